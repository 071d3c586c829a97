package vm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
)

// document returns the node file of a simulated VM.
func document(t *testing.T, name string, change ...func(*v1alpha1.Machine)) config.Document {
	t.Helper()
	n := v1alpha1.Node{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, Metadata: v1alpha1.Metadata{Name: name},
		Spec: v1alpha1.NodeSpec{Machine: &v1alpha1.Machine{Driver: simulatedvm.Name}},
	}
	for _, f := range change {
		f(n.Spec.Machine)
	}
	v1alpha1.SetDefaults(&n)
	return config.Document{Node: n, File: filepath.Join(t.TempDir(), "node.yaml")}
}

// machines returns the VMs of a store in a folder, which a driver simulates.
func machines(t *testing.T, root string, driver vm.Driver) *vm.Machines {
	t.Helper()
	store, err := vm.OpenStore(root)
	check(t, err)
	return vm.NewMachines(store, "swdt vm test", driver)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func states(t *testing.T, s *vm.Machines) map[string]vm.State {
	t.Helper()
	list, err := s.List(t.Context())
	check(t, err)
	states := map[string]vm.State{}
	for _, report := range list {
		states[report.Name] = report.State
	}
	return states
}

// remains returns everything in a store but the folder of locks.
func remains(root string) (left []string) {
	entries, err := os.ReadDir(root)
	for _, entry := range entries {
		if entry.Name() != ".locks" {
			left = append(left, entry.Name())
		}
	}
	if err != nil {
		left = append(left, err.Error())
	}
	return left
}

func TestLifeOfAVM(t *testing.T) {
	root := t.TempDir()
	s, ctx := machines(t, root, &simulatedvm.Driver{}), t.Context()
	doc := document(t, "win-1")
	report, err := s.Create(ctx, doc, ui.Discard{})
	check(t, err)
	if report.Result != "changed" || report.State != vm.Stopped {
		t.Errorf("created: %s %s, want changed %s", report.Result, report.State, vm.Stopped)
	}
	if !strings.HasPrefix(report.Address, "127.0.0.1:") {
		t.Errorf("the address is %s, want one of loopback", report.Address)
	}
	for _, file := range []string{report.Key, filepath.Join(report.Folder, "machine.json")} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	if info, err := os.Stat(report.Folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
	again, err := s.Create(ctx, doc, ui.Discard{})
	check(t, err)
	if again.Result != "unchanged" {
		t.Errorf("created again: %s, want unchanged", again.Result)
	}
	if again.Key != report.Key || again.Address != report.Address {
		t.Errorf("created again: %s at %s, want %s at %s", again.Key, again.Address, report.Key, report.Address)
	}
	for _, step := range []struct {
		do    func() (vm.Report, error)
		state vm.State
		is    string
	}{
		{func() (vm.Report, error) { return s.Start(ctx, "win-1", ui.Discard{}) }, vm.Running, "changed"},
		{func() (vm.Report, error) { return s.Start(ctx, "win-1", ui.Discard{}) }, vm.Running, "unchanged"},
		{func() (vm.Report, error) { return s.Restart(ctx, "win-1", vm.StopOptions{}, ui.Discard{}) }, vm.Running, "changed"},
		{func() (vm.Report, error) { return s.Restart(ctx, "win-1", vm.StopOptions{Force: true}, ui.Discard{}) },
			vm.Running, "changed"},
		{func() (vm.Report, error) { return s.Save(ctx, "win-1", "größe 1", ui.Discard{}) }, vm.Running, "changed"},
		{func() (vm.Report, error) { return s.Stop(ctx, "win-1", vm.StopOptions{}, ui.Discard{}) }, vm.Stopped, "changed"},
		{func() (vm.Report, error) { return s.Stop(ctx, "win-1", vm.StopOptions{}, ui.Discard{}) }, vm.Stopped, "unchanged"},
		{func() (vm.Report, error) { return s.Restore(ctx, "win-1", "größe 1", ui.Discard{}) }, vm.Running, "changed"},
		{func() (vm.Report, error) { return s.RemoveSnapshot(ctx, "win-1", "größe 1", ui.Discard{}) },
			vm.Running, "changed"},
		{func() (vm.Report, error) { return s.Delete(ctx, "win-1", ui.Discard{}) }, vm.Absent, "changed"},
		{func() (vm.Report, error) { return s.Delete(ctx, "win-1", ui.Discard{}) }, vm.Absent, "unchanged"},
	} {
		got, err := step.do()
		check(t, err)
		if got.State != step.state || got.Result != step.is {
			t.Errorf("%s %s %q; want %s %s", got.State, got.Result, got.Message, step.state, step.is)
		}
		if got.Message == "" {
			t.Errorf("%s %s has no message", got.State, got.Result)
		}
	}
	if left := remains(root); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestErrorsNameTheRemedy(t *testing.T) {
	s, ctx := machines(t, t.TempDir(), &simulatedvm.Driver{}), t.Context()
	_, err := s.Start(ctx, "gone", ui.Discard{})
	if !errors.Is(err, vm.ErrUnknown) || !strings.Contains(err.Error(), "`swdt vm create --start`") {
		t.Error(err)
	}
	doc := document(t, "win-1")
	_, err = s.Create(ctx, doc, ui.Discard{})
	check(t, err)
	if _, err = s.Reach(ctx, doc); !errors.Is(err, vm.ErrStopped) || !strings.Contains(err.Error(), "`swdt vm start`") {
		t.Error(err)
	}
	if err := s.SendKeys(ctx, "win-1", []string{"ret"}); !strings.Contains(err.Error(), "`swdt vm start`") {
		t.Error(err)
	}
	if _, err := s.Restore(ctx, "win-1", "none", ui.Discard{}); !errors.Is(err, vm.ErrNoSnapshot) ||
		!strings.Contains(err.Error(), "`swdt vm snapshot list`") {
		t.Error(err)
	}
	if _, err := s.Save(ctx, "win-1", "a\nb", ui.Discard{}); err == nil {
		t.Error("a snapshot with a line break in its name was saved")
	}
}

func TestAGuestThatIgnoresTheRequest(t *testing.T) {
	s, ctx := machines(t, t.TempDir(), &simulatedvm.Driver{}), t.Context()
	report, err := s.Create(ctx, document(t, "win-1"), ui.Discard{})
	check(t, err)
	check(t, simulatedvm.SetIgnores(vm.Machine{Folder: report.Folder}, true))
	_, err = s.Start(ctx, "win-1", ui.Discard{})
	check(t, err)
	_, err = s.Stop(ctx, "win-1", vm.StopOptions{Limit: 10_000_000}, ui.Discard{})
	if _, ok := errors.AsType[*vm.IgnoredError](err); !ok || !strings.Contains(err.Error(), "`swdt vm stop --force`") {
		t.Error(err)
	}
	if got := states(t, s); got["win-1"] != vm.Running {
		t.Errorf("it is %v", got)
	}
	if report, err := s.Stop(ctx, "win-1", vm.StopOptions{Force: true}, ui.Discard{}); err != nil ||
		report.State != vm.Stopped {
		t.Errorf("%+v, %v", report, err)
	}
}

// A failure of any operation of create leaves nothing, or a VM that delete removes.
func TestAFailedCreateLeavesNothing(t *testing.T) {
	broken := errors.New("broken")
	for _, faults := range [][]string{{"create"}, {"create", "delete"}, {"create", "kill"}} {
		t.Run(strings.Join(faults, " and "), func(t *testing.T) {
			root, ctx := t.TempDir(), t.Context()
			driver := &simulatedvm.Driver{Fault: func(operation string, _ vm.Machine) error {
				for _, fault := range faults {
					if operation == fault {
						return broken
					}
				}
				return nil
			}}
			s := machines(t, root, driver)
			if _, err := s.Create(ctx, document(t, "win-1"), ui.Discard{}); !errors.Is(err, broken) {
				t.Fatal(err)
			}
			want := map[string]vm.State{}
			if len(faults) > 1 {
				want["win-1"] = vm.Incomplete
			}
			if diff := cmp.Diff(want, states(t, s)); diff != "" {
				t.Error(diff)
			}
			driver.Fault = nil
			if _, err := s.Start(ctx, "win-1", ui.Discard{}); err == nil {
				t.Error("a VM that is not complete was started")
			}
			_, err := s.Delete(ctx, "win-1", ui.Discard{})
			check(t, err)
			if left := remains(root); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			_, err = s.Create(ctx, document(t, "win-1"), ui.Discard{})
			check(t, err)
		})
	}
}

func TestAFullDisk(t *testing.T) {
	s := machines(t, t.TempDir(), &simulatedvm.Driver{Free: 1000})
	_, err := s.Create(t.Context(), document(t, "win-1"), ui.Discard{})
	if err == nil || !strings.Contains(err.Error(), "free some space") {
		t.Error(err)
	}
	if got := states(t, s); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}

// The port of a VM that another program has taken is replaced; one that the node file
// sets is not.
func TestPortsThatAreTaken(t *testing.T) {
	s, ctx := machines(t, t.TempDir(), &simulatedvm.Driver{}), t.Context()
	report, err := s.Create(ctx, document(t, "win-1"), ui.Discard{})
	check(t, err)
	defer listen(t, report.Address).Close()
	started, err := s.Start(ctx, "win-1", ui.Discard{})
	check(t, err)
	if started.Address == report.Address {
		t.Errorf("the address is still %s, which another program has", started.Address)
	}
	if started.State != vm.Running {
		t.Errorf("state %s, want %s", started.State, vm.Running)
	}

	taken := listen(t, "127.0.0.1:0")
	defer taken.Close()
	port := portOf(t, taken)
	doc := document(t, "win-2",
		func(m *v1alpha1.Machine) { m.Network.Ports = []v1alpha1.MachinePort{{Name: "rdp", Host: port}} })
	_, err = s.Create(ctx, doc, ui.Discard{})
	check(t, err)
	if _, err := s.Start(ctx, "win-2", ui.Discard{}); err == nil ||
		!strings.Contains(err.Error(), "spec.machine.network.ports") {
		t.Error(err)
	}
}

// A port that is lost between its choice and the start is chosen again, a few times.
func TestAPortThatIsLostInTheRace(t *testing.T) {
	lost := 0
	driver := &simulatedvm.Driver{Fault: func(operation string, _ vm.Machine) error {
		if operation != "start" || lost == 0 {
			return nil
		}
		lost--
		return vm.ErrPortTaken
	}}
	s, ctx := machines(t, t.TempDir(), driver), t.Context()
	_, err := s.Create(ctx, document(t, "win-1"), ui.Discard{})
	check(t, err)
	lost = 100
	if _, err := s.Start(ctx, "win-1", ui.Discard{}); err == nil || lost != 95 {
		t.Errorf("%v; %d tries", err, 100-lost)
	}
	lost = 4
	if report, err := s.Start(ctx, "win-1", ui.Discard{}); err != nil || report.State != vm.Running {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestCreateChecksYourMachineAndTheFiles(t *testing.T) {
	s, ctx := machines(t, t.TempDir(), &simulatedvm.Driver{Findings: brokenMachine()}), t.Context()
	_, err := s.Create(ctx, document(t, "win-1"), ui.Discard{})
	if _, ok := errors.AsType[*vm.CheckError](err); !ok || !strings.Contains(err.Error(), "buy more") {
		t.Error(err)
	}
	missing := document(t, "win-2", func(m *v1alpha1.Machine) { m.Image.Disk = "no.qcow2" })
	_, err = s.Create(ctx, missing, ui.Discard{})
	if _, ok := errors.AsType[*config.Error](err); !ok || !strings.Contains(err.Error(), "spec.machine.image.disk") {
		t.Error(err)
	}
	other := document(t, "win-4")
	other.Node.Spec.Machine.Driver = "qemu"
	if _, err = s.Create(ctx, other, ui.Discard{}); err == nil ||
		!strings.Contains(err.Error(), "its drivers are simulated") {
		t.Error(err)
	}
	if got := states(t, s); len(got) > 0 {
		t.Errorf("made: %v", got)
	}
}

func TestPlanChangesNothing(t *testing.T) {
	root := t.TempDir()
	s := machines(t, root, &simulatedvm.Driver{})
	plan, err := s.Plan(t.Context(), document(t, "win-1"), ui.Discard{})
	check(t, err)
	if plan.Exists || len(plan.Command) == 0 {
		t.Errorf("exists: %t, command %q; want a command of a new VM", plan.Exists, plan.Command)
	}
	if got := plan.Record.Network.MAC; !strings.HasPrefix(got, "52:54:00:") {
		t.Errorf("the MAC address is %s, want one of QEMU", got)
	}
	if left := remains(root); len(left) > 0 {
		t.Errorf("made: %v", left)
	}
}

func TestDifferencesAreReported(t *testing.T) {
	s, ctx := machines(t, t.TempDir(), &simulatedvm.Driver{}), t.Context()
	_, err := s.Create(ctx, document(t, "win-1"), ui.Discard{})
	check(t, err)
	warned := &warnings{}
	_, err = s.Create(ctx, document(t, "win-1", func(m *v1alpha1.Machine) { m.CPUs, m.Memory = 2, 4<<30 }), warned)
	check(t, err)
	if len(warned.all) != 2 || !strings.Contains(warned.all[1], "memory: 8Gi, and the node file says 4Gi") {
		t.Errorf("%q", warned.all)
	}
}

// Cancelling create leaves nothing.
func TestACancelledCreate(t *testing.T) {
	root := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	driver := &simulatedvm.Driver{Fault: func(operation string, _ vm.Machine) error {
		if operation == "create" {
			cancel()
			return ctx.Err()
		}
		return nil
	}}
	s := machines(t, root, driver)
	if _, err := s.Create(ctx, document(t, "win-1"), ui.Discard{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := states(t, s); len(got) > 0 {
		t.Errorf("left: %v", got)
	}
}
