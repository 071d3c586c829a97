package vm_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/testing/deadline"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/simulatedvm"
)

// warnings is a Reporter that keeps warnings.
type warnings struct {
	ui.Discard
	all []string
}

func (w *warnings) Warn(format string, args ...any) {
	w.all = append(w.all, fmt.Sprintf(format, args...))
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp4", address)
	check(t, err)
	return listener
}

func portOf(t *testing.T, listener net.Listener) int {
	t.Helper()
	return listener.Addr().(*net.TCPAddr).Port
}

func brokenMachine() []finding.Problem {
	p := finding.Problem{Check: "memory", Where: finding.OnMachine}
	p.Severity, p.What, p.Remedy = finding.Error, "there is no memory", "buy more"
	return []finding.Problem{p}
}

func TestTenVMsSideBySide(t *testing.T) {
	root := t.TempDir()
	addresses := make(chan string, 10)
	var all sync.WaitGroup
	for i := range 10 {
		doc := document(t, fmt.Sprintf("Größe %d", i))
		all.Go(func() {
			s := machines(t, root, &simulatedvm.Driver{}) // as another process has its own
			if _, err := s.Create(t.Context(), doc, ui.Discard{}); err != nil {
				t.Error(err)
			}
			report, err := s.Start(t.Context(), doc.Node.Metadata.Name, ui.Discard{})
			if err != nil || report.State != vm.Running {
				t.Errorf("%+v, %v", report, err)
			}
			addresses <- report.Address
		})
	}
	all.Wait()
	close(addresses)
	s := machines(t, root, &simulatedvm.Driver{})
	if got := states(t, s); len(got) != 10 || got["Größe 7"] != vm.Running {
		t.Errorf("%v", got)
	}
	for i := range 10 {
		all.Go(func() {
			if _, err := s.Delete(t.Context(), fmt.Sprintf("Größe %d", i), ui.Discard{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if left := remains(root); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if locks, _ := filepath.Glob(filepath.Join(root, ".locks", "*")); len(locks) > 0 {
		t.Errorf("left: %v", locks)
	}
}

// Of two commands on one VM the second waits for the first.
func TestTwoCommandsOnOneVM(t *testing.T) {
	root := t.TempDir()
	inside, goOn := make(chan struct{}), make(chan struct{})
	slow := machines(t, root, &simulatedvm.Driver{Fault: func(operation string, _ vm.Machine) error {
		if operation == "start" {
			close(inside)
			<-goOn
		}
		return nil
	}})
	s := machines(t, root, &simulatedvm.Driver{})
	_, err := s.Create(t.Context(), document(t, "win-1"), ui.Discard{})
	check(t, err)
	var first sync.WaitGroup
	first.Go(func() {
		if _, err := slow.Start(t.Context(), "win-1", ui.Discard{}); err != nil {
			t.Error(err)
		}
	})
	<-inside
	list, err := s.List(t.Context(), "win-1")
	check(t, err)
	if list[0].State != vm.Busy {
		t.Errorf("state %s, want %s", list[0].State, vm.Busy)
	}
	if holder := fmt.Sprintf("`swdt vm test` (process %d)", os.Getpid()); !strings.Contains(list[0].Reason, holder) {
		t.Errorf("reason %q, want %q in it", list[0].Reason, holder)
	}
	impatient, pass := deadline.Context(t.Context())
	pass()
	_, err = s.Stop(impatient, "win-1", vm.StopOptions{}, ui.Discard{})
	busy, ok := errors.AsType[*vm.BusyError](err)
	if !ok || busy.Holder == nil {
		t.Fatalf("error %v, want a BusyError with its holder", err)
	}
	if got := busy.Holder.Command; got != "swdt vm test" {
		t.Errorf("the holder is %q, want swdt vm test", got)
	}
	var second sync.WaitGroup
	second.Go(func() {
		report, err := s.Start(t.Context(), "win-1", ui.Discard{})
		if err != nil || report.Result != "unchanged" {
			t.Errorf("%+v, %v", report, err)
		}
	})
	close(goOn)
	first.Wait()
	second.Wait()
}

// The variables of a test process that kills itself.
const (
	killAt   = "SWDT_TEST_KILL_AT"
	killRoot = "SWDT_TEST_KILL_ROOT"
	killIn   = "SWDT_TEST_KILL_IN"
)

// killer kills its process at the n-th step.
type killer struct {
	ui.Discard
	left int
}

func (k *killer) Debug(string, ...any) {
	if k.left--; k.left < 0 {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			os.Exit(9)
		}
		select {} // until the signal arrives
	}
}

func TestMain(m *testing.M) {
	root := os.Getenv(killRoot)
	if root == "" {
		os.Exit(m.Run())
	}
	n, err := strconv.Atoi(os.Getenv(killAt))
	if err == nil {
		err = killed(root, os.Getenv(killIn), n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func killed(root, command string, n int) error {
	store, err := vm.OpenStore(root)
	if err != nil {
		return err
	}
	// Each operation of the driver is a step, too.
	k := &killer{left: n}
	s := vm.NewMachines(store, "swdt vm test", &simulatedvm.Driver{Fault: func(string, vm.Machine) error {
		k.Debug("")
		return nil
	}})
	if command == "delete" {
		_, err = s.Delete(context.Background(), "win-1", k)
		return err
	}
	_, err = s.Create(context.Background(), killedDocument(), k)
	return err
}

// A swdt that is killed between any two steps of create or delete leaves a store whose
// list is true, and that create and delete repair.
func TestKilledBetweenAnyTwoSteps(t *testing.T) {
	for _, command := range []string{"create", "delete"} {
		for n := 0; ; n++ {
			root := t.TempDir()
			s := machines(t, root, &simulatedvm.Driver{})
			if command == "delete" {
				_, err := s.Create(t.Context(), document(t, "win-1"), ui.Discard{})
				check(t, err)
			}
			process := exec.Command(os.Args[0])
			process.Env = append(os.Environ(), killRoot+"="+root, killAt+"="+strconv.Itoa(n), killIn+"="+command,
				"TMPDIR="+t.TempDir())
			out, err := process.CombinedOutput()
			if err == nil { // there is no n-th step
				if n < 3 {
					t.Fatalf("%s has only %d steps", command, n)
				}
				break
			}
			if process.ProcessState.ExitCode() != -1 {
				t.Fatalf("%s was not killed at %d: %v: %s", command, n, err, out)
			}
			for name, state := range states(t, s) {
				if name != "win-1" || state != vm.Incomplete && state != vm.Stopped && state != vm.Damaged {
					t.Errorf("%s killed at %d: %s is %s", command, n, name, state)
				}
			}
			if n%2 == 0 {
				_, err = s.Delete(t.Context(), "win-1", ui.Discard{})
				check(t, err)
			}
			if _, err := s.Delete(t.Context(), "win-1", ui.Discard{}); err != nil {
				t.Errorf("%s killed at %d: delete: %v", command, n, err)
			}
			if diff := cmp.Diff(map[string]vm.State{}, states(t, s)); diff != "" {
				t.Errorf("%s killed at %d: %s", command, n, diff)
			}
			if report, err := s.Create(t.Context(), document(t, "win-1"), ui.Discard{}); err != nil ||
				report.State != vm.Stopped {
				t.Errorf("%s killed at %d: create: %+v, %v", command, n, report, err)
			}
		}
	}
}

// killedDocument is like document, for a process without a test.
func killedDocument() config.Document {
	n := v1alpha1.Node{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, Metadata: v1alpha1.Metadata{Name: "win-1"},
		Spec: v1alpha1.NodeSpec{Machine: &v1alpha1.Machine{Driver: simulatedvm.Name}},
	}
	v1alpha1.SetDefaults(&n)
	return config.Document{Node: n, File: config.Stdin}
}
