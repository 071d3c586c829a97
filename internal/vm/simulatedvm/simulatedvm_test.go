package simulatedvm_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
	"github.com/swdt-dev/swdt/internal/vm/vmtest"
)

func TestContract(t *testing.T) {
	vmtest.Run(t, func(t *testing.T) vmtest.Fixture {
		return vmtest.Fixture{
			Driver:  &simulatedvm.Driver{},
			Machine: machine,
			Ignore:  func(_ *testing.T, m *vm.Machine) { m.UUID = simulatedvm.IgnoreUUID },
			Crash:   func(t *testing.T, m vm.Machine) { check(t, simulatedvm.Crash(m)) },
			Reboot:  func(t *testing.T, m vm.Machine) { check(t, simulatedvm.Reboot(m)) },
			Write:   func(t *testing.T, m vm.Machine, text string) { check(t, simulatedvm.WriteDisk(m, text)) },
			Read: func(t *testing.T, m vm.Machine) string {
				text, err := simulatedvm.ReadDisk(m)
				check(t, err)
				return text
			},
		}
	})
}

func machine(t *testing.T, name string) vm.Machine {
	return vm.Machine{
		Version: 1, Name: name, UUID: "1b4e28ba-2fa1-41d2-883f-0016d3cca427", Driver: simulatedvm.Name,
		Folder: filepath.Join(t.TempDir(), "vm"),
		CPUs:   1, Memory: 64 << 20, Disk: 1 << 20,
		Network: vm.Network{Mode: vm.UserMode, Forwards: []vm.Forward{{Name: "ssh", HostPort: 2222, GuestPort: 22}}},
	}
}

func TestEachOperationFailsOnDemand(t *testing.T) {
	broken := errors.New("broken")
	var operations []string
	d := &simulatedvm.Driver{Fault: func(operation string, _ vm.Machine) error {
		operations = append(operations, operation)
		return broken
	}}
	m, ctx := machine(t, "m"), t.Context()
	for _, err := range []error{
		d.Create(ctx, m), d.Start(ctx, m), d.Stop(ctx, m), d.Kill(ctx, m), d.Restart(ctx, m),
		d.Save(ctx, m, "s"), d.Restore(ctx, m, "s"), d.RemoveSnapshot(ctx, m, "s"), d.Delete(ctx, m),
	} {
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
	want := []string{"create", "start", "stop", "kill", "restart", "save", "restore", "remove", "delete"}
	if diff := cmp.Diff(want, operations); diff != "" {
		t.Error(diff)
	}
	if status, err := d.Status(ctx, m); err != nil || status.State != vm.Absent {
		t.Errorf("the VM is %s, %v", status.State, err)
	}
}

func TestAFullDisk(t *testing.T) {
	d, m := &simulatedvm.Driver{Free: 1000}, machine(t, "m")
	if _, ok := errors.AsType[*localfile.NoRoomError](d.Create(t.Context(), m)); !ok {
		t.Error("a disk of 1 MiB fits into 1000 bytes")
	}
	if status, err := d.Status(t.Context(), m); err != nil || status.State != vm.Absent {
		t.Errorf("the VM is %s, %v", status.State, err)
	}
}

func TestPressedKeys(t *testing.T) {
	d, m, ctx := &simulatedvm.Driver{}, machine(t, "m"), t.Context()
	check(t, d.Create(ctx, m))
	check(t, d.Start(ctx, m))
	check(t, d.SendKeys(ctx, m, []string{"ret", "ctrl-alt-delete"}))
	if got, err := d.Pressed(m); err != nil || !cmp.Equal(got, []string{"ret", "ctrl-alt-delete"}) {
		t.Errorf("%v, %v", got, err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
