package libvirt_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	golibvirt "github.com/digitalocean/go-libvirt"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/libvirt"
	"github.com/swdt-dev/swdt/internal/vm/vmtest"
)

// bootSector returns a guest of 512 bytes, which waits for the power button and powers off.
func bootSector() []byte {
	sector := make([]byte, 512)
	copy(sector, []byte{
		0xba, 0x02, 0x06, 0xb8, 0x00, 0x01, 0xef, // enable the power button: mov dx, 0x602; mov ax, 0x100; out dx, ax
		0xba, 0x00, 0x06, // mov dx, 0x600
		0xfb, 0xf4, 0xed, 0xf6, 0xc4, 0x01, 0x74, 0xf8, // wait: sti; hlt; in ax, dx; test ah, 1; jz wait
		0xba, 0x04, 0x06, 0xb8, 0x00, 0x20, 0xef, 0xeb, 0xfe, // mov dx, 0x604; mov ax, 0x2000; out dx, ax; loop for ever
	})
	sector[510], sector[511] = 0x55, 0xaa
	return sector
}

func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), program(t, name), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
}

// domains are domains with real QEMU, each with a disk in the daemon's folder.
type domains struct{ lab }

func (d domains) disk(m vm.Machine) string {
	return filepath.Join(d.daemon.folder, m.UUID+".qcow2")
}

func (d domains) define(t *testing.T, name string) vm.Machine {
	t.Helper()
	id := uuid()
	raw, disk := filepath.Join(t.TempDir(), "raw"), filepath.Join(d.daemon.folder, id+".qcow2")
	check(t, os.WriteFile(raw, bootSector(), 0o600))
	check(t, os.Truncate(raw, 64<<20))
	tool(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, disk)
	return d.lab.define(t, name, fmt.Sprintf(`<domain type='qemu'><name>%s</name><uuid>%s</uuid>
		<memory unit='MiB'>32</memory><vcpu>1</vcpu><os><type arch='x86_64'>hvm</type></os><features><acpi/></features>
		<devices><disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='%s'/><target dev='vda' bus='virtio'/></disk>
		<interface type='user'><mac address='52:54:00:00:00:07'/><model type='virtio'/></interface>
		<serial type='pty'/><graphics type='vnc'><listen type='socket'/></graphics><video><model type='vga'/></video></devices></domain>`,
		escaped(name), id, disk))
}

// kill9 kills a domain's QEMU.
func kill9(t *testing.T, m vm.Machine) {
	t.Helper()
	all := processes(t, "-uuid\x00"+m.UUID)
	if len(all) != 1 {
		t.Fatalf("the domain has the processes %v", all)
	}
	pid, err := strconv.Atoi(all[0])
	check(t, err)
	check(t, syscall.Kill(pid, syscall.SIGKILL))
	eventually(t, "QEMU has died", func() error {
		if left := processes(t, "-uuid\x00"+m.UUID); len(left) > 0 {
			return fmt.Errorf("processes %v", left)
		}
		return nil
	})
}

// write writes a sector of a domain's disk.
func (d domains) write(t *testing.T, m vm.Machine, text, at string) {
	t.Helper()
	path, sector := filepath.Join(t.TempDir(), "sector"), make([]byte, 512)
	copy(sector, text)
	check(t, os.WriteFile(path, sector, 0o600))
	tool(t, "qemu-io", "-f", "qcow2", "-c", "write -s "+path+" "+at+" 512", d.disk(m))
}

// booted waits until the firmware reads the disk. SeaBIOS that is reset in the middle of its
// power-on self-test hangs for ever: it runs on from a copy of itself that is only half written.
func (d domains) booted(t *testing.T, m vm.Machine) {
	t.Helper()
	d.on(t, m, func(rpc *golibvirt.Libvirt, domain golibvirt.Domain) {
		eventually(t, "the firmware reads the disk", func() error {
			reads, _, _, _, _, err := rpc.DomainBlockStats(domain, "vda")
			if err == nil && reads == 0 {
				err = errors.New("no read yet")
			}
			return err
		})
	})
}

// Domains of a real libvirt with real QEMU pass the contract.
func TestContractOfRealDomains(t *testing.T) {
	program(t, "qemu-system-x86_64")
	l := startDaemon(t)
	vmtest.Run(t, func(*testing.T) vmtest.Fixture {
		d := domains{lab{l, "qemu:///session"}}
		return vmtest.Fixture{
			Driver: libvirt.New(), Machine: d.define,
			Ignore: func(t *testing.T, m *vm.Machine) { d.write(t, *m, "", "0") }, // the firmware finds nothing to boot
			Booted: d.booted,
			Crash: func(t *testing.T, m vm.Machine) {
				kill9(t, m)
				eventually(t, "libvirt sees the crash", func() error {
					status, err := libvirt.New().Status(t.Context(), m)
					if err == nil && status.State == vm.Running {
						err = vm.ErrRunning
					}
					return err
				})
			},
			Reboot: func(t *testing.T, m vm.Machine) {
				l.stop(t)
				kill9(t, m)
				check(t, os.RemoveAll(filepath.Join(l.folder, "run")))
				check(t, os.Mkdir(filepath.Join(l.folder, "run"), 0o700))
				l.start(t)
			},
			Write: func(t *testing.T, m vm.Machine, text string) { d.write(t, m, text, "32M") },
			Read: func(t *testing.T, m vm.Machine) string {
				path := filepath.Join(t.TempDir(), "sector")
				tool(t, "qemu-img", "dd", "-f", "qcow2", "-O", "raw", "bs=512", "skip=65536", "count=65537", "if="+d.disk(m),
					"of="+path)
				sector, err := os.ReadFile(path)
				check(t, err)
				return strings.TrimRight(string(sector), "\x00")
			},
		}
	}, "Observed", "Published")
}
