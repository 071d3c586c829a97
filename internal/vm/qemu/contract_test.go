package qemu_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu"
	"github.com/swdt-dev/swdt/internal/vm/vmtest"
)

// need ends the test if a program is missing: as a failure in CI, as a skip elsewhere.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil && os.Getenv("CI") != "" {
			t.Fatal(err)
		} else if err != nil {
			t.Skipf("needs %s: scripts/install-test-deps.sh installs it", name)
		}
	}
}

// driver returns a driver of the real QEMU. The verdict on the accelerator is shared.
func driver(t *testing.T) *qemu.Driver {
	t.Helper()
	need(t, "qemu-system-x86_64", "qemu-img", "swtpm")
	return qemu.New(qemu.Options{Cache: filepath.Join(os.TempDir(), "swdt-qemu-test")})
}

// record returns the record of a small VM in a folder of its own, and removes the VM after
// the test.
func record(t *testing.T, d *qemu.Driver, name string) vm.Machine {
	t.Helper()
	m := vm.Machine{
		Version: 1, Name: name, UUID: uuid(t), Driver: qemu.Name, Folder: filepath.Join(shortTemp(t), name),
		CPUs: 1, Memory: 128 << 20, Disk: 64 << 20, DiskBus: vm.VirtIO,
		Network: vm.Network{
			Mode: vm.UserMode, Isolated: true, Adapter: vm.VirtIONet, MAC: "52:54:00:00:00:01",
			Forwards: []vm.Forward{{Name: "ssh", HostPort: freePort(t), GuestPort: 22}},
		},
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := d.Kill(ctx, m); err != nil {
			t.Error(err)
		}
		if err := d.Delete(ctx, m); err != nil {
			t.Error(err)
		}
		leaksNothing(t, m)
	})
	return m
}

// shortTemp returns a folder whose path leaves room for sockets.
func shortTemp(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "q")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

func uuid(t *testing.T) string {
	t.Helper()
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// leaksNothing checks that no process has the VM's UUID or folder in its command line.
func leaksNothing(t *testing.T, m vm.Machine) {
	t.Helper()
	for _, line := range processesOf(t, m) {
		t.Errorf("a process is left: %s", line)
	}
}

// processesOf returns the command lines that have the VM's UUID or folder.
func processesOf(t *testing.T, m vm.Machine) (all []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && (bytes.Contains(line, []byte(m.UUID)) || bytes.Contains(line, []byte(m.Folder))) {
			all = append(all, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return all
}

// kill9 kills a VM's QEMU, as a person or the kernel does when memory runs out.
func kill9(t *testing.T, d *qemu.Driver, m vm.Machine) {
	t.Helper()
	status, err := d.Status(t.Context(), m)
	if err != nil || status.PID == 0 {
		t.Fatalf("%+v, %v", status, err)
	}
	process, err := os.FindProcess(status.PID)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "QEMU has died", func() bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", status.PID))
		return err != nil || len(line) == 0
	})
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	limit := time.After(time.Minute)
	for !condition() {
		select {
		case <-ticker.C:
		case <-limit:
			t.Fatalf("never: %s", what)
		}
	}
}

// Real QEMU passes the contract of all drivers, with a guest that is a UEFI program.
func TestContract(t *testing.T) {
	need(t, "qemu-io")
	disk := guestDisk(t)
	vmtest.Run(t, func(t *testing.T) vmtest.Fixture {
		d := driver(t)
		return vmtest.Fixture{
			Driver: d,
			Machine: func(t *testing.T, name string) vm.Machine {
				m := record(t, d, name)
				m.Image.Base = disk
				return m
			},
			// Without a disk to boot, the firmware runs on, which ignores the button.
			Ignore: func(_ *testing.T, m *vm.Machine) { m.Image.Base = "" },
			Crash:  func(t *testing.T, m vm.Machine) { kill9(t, d, m) },
			Reboot: func(t *testing.T, m vm.Machine) {
				kill9(t, d, m)
				changeRecord(t, m, "boot", "an earlier boot")
			},
			Write: func(t *testing.T, m vm.Machine, text string) {
				path := filepath.Join(t.TempDir(), "sector")
				sector := make([]byte, 512)
				copy(sector, text)
				if err := os.WriteFile(path, sector, 0o600); err != nil {
					t.Fatal(err)
				}
				tool(t, "qemu-io", "-f", "qcow2", "-c", "write -s "+path+" 32M 512", filepath.Join(m.Folder, "disk.qcow2"))
			},
			Read: func(t *testing.T, m vm.Machine) string {
				path := filepath.Join(t.TempDir(), "sector")
				tool(t, "qemu-img", "dd", "-f", "qcow2", "-O", "raw", "bs=512", "skip=65536", "count=65537",
					"if="+filepath.Join(m.Folder, "disk.qcow2"), "of="+path)
				sector, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				return strings.TrimRight(string(sector), "\x00")
			},
		}
	})
}

// changeRecord changes a field in the record of a VM's run.
func changeRecord(t *testing.T, m vm.Machine, field string, value any) {
	t.Helper()
	path := filepath.Join(m.Folder, "run", "started.json")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(content, &fields); err != nil {
		t.Fatal(err)
	}
	fields[field] = value
	if content, err = json.Marshal(fields); err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
