//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/testing/vmguest"
	"github.com/swdt-dev/swdt/internal/wait"
)

// bootLimit bounds a boot of a guest without acceleration, on a machine that does other things too.
const (
	bootLimit = 5 * time.Minute
	bootPoll  = 200 * time.Millisecond
)

// TestGuestStandsForWindows checks that the guest works as a Windows node for swdt, that it keeps its
// state while it is switched off, and that restoring its disk restores this state.
func TestGuestStandsForWindows(t *testing.T) {
	g := newGuest(t, vmguest.Settings{Hostname: "guest", Preset: "minimal"})
	vm := g.boot(t)
	file := g.nodeFile(t, vm.hostKey)
	if r := swdt(t, "exec", "-c", file, "hostname.exe"); r.code != 0 || !strings.Contains(r.stdout, "guest") {
		t.Errorf("hostname: %v", r)
	}
	hostKey := vm.hostKey
	// The feature needs a restart of Windows, which resets the VM.
	if r := swdt(t, "setup", "-c", file, "--allow-reboot"); r.code != 0 || !strings.Contains(r.stdout, "Containers") {
		t.Errorf("setup: %v", r)
	}
	if n := vm.count(t, "RESET"); n != 1 {
		t.Errorf("%d resets, want 1", n)
	}
	vm.powerDown(t)

	g.command(t, "qemu-img", "snapshot", "-c", "before", g.disk)
	vm = g.boot(t)
	if vm.hostKey != hostKey {
		t.Errorf("the host key changed from %s to %s", hostKey, vm.hostKey)
	}
	if r := swdt(t, "setup", "-c", file, "--dry-run"); r.code != 0 || strings.Contains(r.stdout, "enable") {
		t.Errorf("after a restart, setup has something to do: %v", r)
	}
	if r := swdt(t, "cp", "-c", file, file, `node:C:\marker.txt`); r.code != 0 {
		t.Errorf("cp: %v", r)
	}
	vm.powerDown(t)

	g.command(t, "qemu-img", "snapshot", "-a", "before", g.disk)
	vm = g.boot(t)
	if r := swdt(t, "exec", "-c", file, "--", "cmd", "/c", "type", `C:\marker.txt`); r.code == 0 {
		t.Errorf("the file is younger than the snapshot, and is there: %v", r)
	}
	vm.powerDown(t)
}

// guest is a disk with a configuration CD.
type guest struct {
	folder, disk, cd, key string
	address               string // of the guest's SSH server, on this machine
}

func newGuest(t *testing.T, s vmguest.Settings) guest {
	t.Helper()
	base := vmguest.Disk(t)
	signer, key, err := sandbox.NewKey("test")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	g := guest{
		folder: folder, disk: filepath.Join(folder, "disk.qcow2"), key: filepath.Join(folder, "id"), address: address,
	}
	if err := os.WriteFile(g.key, key, 0o600); err != nil {
		t.Fatal(err)
	}
	s.AuthorizedKeys = []string{string(ssh.MarshalAuthorizedKey(signer.PublicKey()))}
	g.cd = vmguest.ConfigCD(t, s)
	g.command(t, "qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "qcow2", g.disk)
	variables, err := os.ReadFile("/usr/share/OVMF/OVMF_VARS_4M.fd")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "vars.fd"), variables, 0o600); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g guest) command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func (g guest) nodeFile(t *testing.T, hostKey string) string {
	t.Helper()
	file := filepath.Join(g.folder, "node.yaml")
	text := fmt.Sprintf(`apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata:
  name: guest
spec:
  credentials:
    username: %s
    hostname: %s
    privateKey: %q
    hostKey: %s
  setup:
    features:
      - Containers
`, vmguest.User, g.address, g.key, hostKey)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// runningGuest is a guest that runs.
type runningGuest struct {
	process *exec.Cmd
	ended   <-chan struct{} // closed when the process has ended
	out     io.Writer       // QMP
	in      *bufio.Scanner
	events  map[string]int
	hostKey string
}

// boot starts QEMU and waits until the guest's SSH server answers.
func (g guest) boot(t *testing.T) *runningGuest {
	t.Helper()
	serial, qmp := filepath.Join(g.folder, "serial.log"), filepath.Join(g.folder, "qmp")
	if err := os.RemoveAll(serial); err != nil {
		t.Fatal(err)
	}
	vm := &runningGuest{events: map[string]int{}}
	vm.process = exec.Command("qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "max", "-m", "1024",
		"-nodefaults", "-display", "none",
		"-drive", "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd",
		"-drive", "if=pflash,format=raw,file="+filepath.Join(g.folder, "vars.fd"),
		"-blockdev", "qcow2,node-name=disk0,file.driver=file,file.filename="+g.disk,
		"-device", "virtio-blk-pci,drive=disk0,bootindex=1",
		"-drive", "if=none,id=cd0,media=cdrom,readonly=on,file="+g.cd, "-device", "ide-cd,drive=cd0",
		"-netdev", "user,id=net0,hostfwd=tcp:"+g.address+"-:22", "-device", "virtio-net-pci,netdev=net0",
		"-device", "virtio-rng-pci", "-serial", "file:"+serial, "-qmp", "unix:"+qmp+",server=on,wait=off")
	var output bytes.Buffer
	vm.process.Stdout, vm.process.Stderr = &output, &output
	if err := vm.process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		vm.process.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		vm.process.Process.Kill()
		<-ended
		if t.Failed() {
			text, _ := os.ReadFile(serial)
			t.Logf("QEMU: %s\nserial port:\n%s", output.String(), text)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), bootLimit)
	defer cancel()
	err := wait.Condition{Name: "the guest's SSH server", Interval: bootPoll, Look: func(context.Context) error {
		text, err := os.ReadFile(serial)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if _, key, ok := strings.Cut(strings.TrimSpace(line), vmguest.HostKey); ok {
				vm.hostKey = key
			}
		}
		select {
		case <-ended:
			return wait.Stop(errors.New("QEMU has ended"))
		default:
		}
		if !strings.Contains(string(text), vmguest.Ready) {
			return errors.New("it does not run yet")
		}
		return nil
	}}.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", qmp)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	vm.ended, vm.out, vm.in = ended, conn, bufio.NewScanner(conn)
	vm.ask(t, "qmp_capabilities")
	return vm
}

// ask sends a command, counts the events that come before the reply, and returns when the reply has
// come.
func (vm *runningGuest) ask(t *testing.T, command string) {
	t.Helper()
	if _, err := fmt.Fprintf(vm.out, `{"execute": %q, "id": %[1]q}`+"\n", command); err != nil {
		t.Fatal(err)
	}
	for vm.in.Scan() {
		var m struct {
			Event string          `json:"event"`
			ID    string          `json:"id"`
			Error json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(vm.in.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		vm.events[m.Event]++
		if m.ID == command {
			if len(m.Error) > 0 {
				t.Fatalf("%s: %s", command, m.Error)
			}
			return
		}
	}
	t.Fatalf("%s: QEMU has ended: %v", command, vm.in.Err())
}

// count returns how often an event has come until now.
func (vm *runningGuest) count(t *testing.T, event string) int {
	t.Helper()
	vm.ask(t, "query-status")
	return vm.events[event]
}

// powerDown presses the power button, and waits until the guest has shut down.
func (vm *runningGuest) powerDown(t *testing.T) {
	t.Helper()
	vm.ask(t, "system_powerdown")
	select {
	case <-vm.ended:
	case <-time.After(time.Minute):
		t.Fatal("the guest ignores the power button")
	}
}
