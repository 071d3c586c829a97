package qemu_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu"
)

// outbound returns the record of a small VM that reaches other machines.
func outbound(t *testing.T, d *qemu.Driver) vm.Machine {
	t.Helper()
	need(t, "pasta", "passt")
	m := record(t, d, "outbound")
	m.Network.Isolated = false
	m.Network.Forwards = append(m.Network.Forwards, vm.Forward{Name: "rdp", HostPort: freePort(t), GuestPort: 3389})
	return m
}

// A VM that reaches other machines has the life of every VM, and the programs of its network end with its QEMU, also if
// that is killed.
func TestTheNetworkEndsWithItsVM(t *testing.T) {
	d := driver(t)
	m := outbound(t, d)
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	for _, f := range m.Network.Forwards {
		conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", f.HostPort))
		if err != nil {
			t.Errorf("the forward %s: %v", f.Name, err)
			continue
		}
		_ = conn.Close()
	}
	check(t, d.Save(t.Context(), m, "live"))
	check(t, d.Restore(t.Context(), m, "live"))
	check(t, d.Kill(t.Context(), m))
	leaksNothing(t, m)
	check(t, d.Restore(t.Context(), m, "live"))
	if got := state(t, d, m); got != vm.Running {
		t.Errorf("the restored VM is %s", got)
	}
	kill9(t, d, m)
	eventually(t, "all programs have ended", func() bool { return len(processesOf(t, m)) == 0 })
	check(t, d.Kill(t.Context(), m))

	// Memory of a VM of an earlier swdt, whose card was on QEMU's own network.
	records, err := filepath.Glob(filepath.Join(m.Folder, "snapshots", "*.json"))
	if err != nil || len(records) != 1 {
		t.Fatalf("%v, %v", records, err)
	}
	text, err := os.ReadFile(records[0])
	check(t, err)
	write(t, records[0], strings.Replace(string(text), `,"passt":true`, "", 1))
	for _, running := range []bool{false, true} {
		if err := d.Restore(t.Context(), m, "live"); !errors.Is(err, vm.ErrUnsupported) {
			t.Errorf("running %t: %v", running, err)
		}
		if got := state(t, d, m); (got == vm.Running) != running {
			t.Errorf("running %t: the VM is %s", running, got)
		}
		if !running {
			check(t, d.Start(t.Context(), m))
		}
	}
}

// A start that fails since a port is taken, or since a program is missing, leaves nothing behind.
func TestANetworkThatDoesNotStart(t *testing.T) {
	d := driver(t)
	m := outbound(t, d)
	check(t, d.Create(t.Context(), m))
	taken, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", m.Network.Forwards[1].HostPort))
	check(t, err)
	if err := d.Start(t.Context(), m); !errors.Is(err, vm.ErrPortTaken) {
		t.Errorf("a port that is taken: %v", err)
	}
	check(t, taken.Close())
	leaksNothing(t, m)
	without := qemu.New(qemu.Options{Outbound: "/no/pasta", Cache: filepath.Join(os.TempDir(), "swdt-qemu-test")})
	if err := without.Start(t.Context(), m); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is missing: %v", err)
	}
	leaksNothing(t, m)
	if got := state(t, d, m); got != vm.Stopped {
		t.Errorf("the VM is %s", got)
	}
	missing := func(p finding.Problem) bool { return p.Check == "passt" }
	if !slices.ContainsFunc(without.Check(t.Context(), m), missing) {
		t.Error("the check does not find that passt is missing")
	}
	m.Network.Isolated = true
	if slices.ContainsFunc(without.Check(t.Context(), m), missing) {
		t.Error("a VM that reaches nothing does not need passt")
	}
	m.Network.Isolated = false
	check(t, d.Start(t.Context(), m))
}
