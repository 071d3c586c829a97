package hyperv_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/hyperv"
	"github.com/swdt-dev/swdt/internal/vm/hyperv/hypervtest"
	"github.com/swdt-dev/swdt/internal/vm/vmtest"
)

// TestMain makes this program the stand-in for PowerShell if the driver starts it.
func TestMain(m *testing.M) {
	if path := os.Getenv(hypervtest.Variable); path != "" {
		os.Exit(hypervtest.Main(path, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// host is an imagined Windows with Hyper-V.
type host struct{ path string }

// newHost returns the imagined Windows of a test, which the driver uses until its end.
func newHost(t *testing.T) (host, *hyperv.Driver) {
	t.Helper()
	program, err := os.Executable()
	check(t, err)
	h := host{filepath.Join(t.TempDir(), "host.json")}
	t.Setenv(hypervtest.Variable, h.path)
	// The race detector would let each process of the stand-in sleep for a second at its end.
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	return h, hyperv.New(hyperv.Options{PowerShell: program})
}

// change changes the imagined Windows.
func (h host) change(t *testing.T, change func(*hypervtest.Host)) {
	t.Helper()
	check(t, hypervtest.Change(h.path, func(h *hypervtest.Host) error {
		change(h)
		return nil
	}))
}

// vm changes a VM of the imagined Windows.
func (h host) vm(t *testing.T, m vm.Machine, change func(*hypervtest.VM)) {
	t.Helper()
	found := false
	h.change(t, func(h *hypervtest.Host) {
		for _, v := range h.VMs {
			if v.Notes == "swdt "+m.UUID {
				change(v)
				found = true
			}
		}
	})
	if !found {
		t.Fatalf("the imagined Windows has no VM %s", m.Name)
	}
}

func machine(t *testing.T, name string) vm.Machine {
	t.Helper()
	var b [16]byte
	_, _ = rand.Read(b[:])
	return vm.Machine{
		Version: 1, Name: name, UUID: fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]),
		Driver: hyperv.Name, Folder: filepath.Join(t.TempDir(), "vm"), CPUs: 2, Memory: 1 << 30, Disk: 64 << 30,
		Firmware: vm.Firmware{SecureBoot: true, TPM: true},
		Network: vm.Network{Mode: vm.BridgeMode, Bridge: "Default Switch", MAC: "52:54:00:0a:0b:0c",
			Forwards: []vm.Forward{}},
		Discs: []string{},
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestContract(t *testing.T) {
	const installs = "Observed" // a capability that Hyper-V's driver lacks
	vmtest.Run(t, func(t *testing.T) vmtest.Fixture {
		h, d := newHost(t)
		off := func(t *testing.T, m vm.Machine) { h.vm(t, m, func(v *hypervtest.VM) { v.State = "Off" }) }
		disk := func(m vm.Machine) string { return filepath.Join(m.Folder, "hyperv", "disk.vhdx") }
		return vmtest.Fixture{
			Driver: d, Machine: machine,
			Ignore: func(t *testing.T, m *vm.Machine) {
				h.change(t, func(h *hypervtest.Host) { h.Ignoring = append(h.Ignoring, "swdt "+m.UUID) })
			},
			Crash: off, Reboot: off,
			Write: func(t *testing.T, m vm.Machine, text string) { check(t, os.WriteFile(disk(m), []byte(text), 0o600)) },
			Read: func(t *testing.T, m vm.Machine) string {
				text, err := os.ReadFile(disk(m))
				check(t, err)
				return string(text)
			},
		}
	}, installs, "Published")
}
