//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/testing/vmguest"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu"
)

const (
	// vmName is the name of the node and its VM.
	vmName = "acceptance"
	// vmOverhead is the time that swdt gets beyond its own --timeout.
	vmOverhead = 15 * time.Second
)

// vmReports has the promised fields of `swdt vm … -o json`.
type vmReports struct {
	VMs []vmReport
}

type vmReport struct {
	Name, Result, State, Reason, Accelerator, Address, Image, Folder, Key, PasswordFile string
	PID                                                                                 int
}

// TestAVMFromCreateToRestore makes a VM from an image, sets it up as a node, and restores its state
// before a push, with real QEMU and the Linux guest that acts as Windows.
func TestAVMFromCreateToRestore(t *testing.T) {
	image := vmguest.Disk(t)
	imageHash := hashFile(t, image)
	home := newVMHome(t)
	file := home.nodeFile(t, image)

	created := oneVM(t, ok(t, "vm", "create", "-c", file, "-o", "json"))
	wantVM(t, created, "changed", "stopped")
	if created.Image != image || created.Folder != filepath.Join(home.machines(), vmName) {
		t.Errorf("image %s, folder %s: want %s below %s", created.Image, created.Folder, image, home.machines())
	}
	home.writeCD(t, vmguest.Settings{
		Hostname: vmName, Preset: "node", AuthorizedKeys: []string{readText(t, created.Key+".pub")},
	})
	started := oneVM(t, home.start(t, file))
	wantVM(t, started, "changed", "running")
	pids, sockets := home.processes(t), home.sockets(t)
	const logs = 2 // the processes that write serial.log and qemu.log
	if !slices.Contains(pids, started.PID) || len(pids) != 1+logs {
		t.Errorf("%+v: want its process and %d that write logs, got %v", started, logs, pids)
	}
	if started.Accelerator != "tcg" || len(sockets) == 0 {
		t.Errorf("%+v: want accelerator tcg and sockets, which are %q", started, sockets)
	}
	wantHostKey(t, started.Folder)

	if got := setUp(t, file); got != "changed" {
		t.Errorf("setup: %s, want changed", got)
	}
	before := kubeletOf(t, file)
	wantVM(t, oneVM(t, ok(t, "vm", "snapshot", "save", "clean", "-c", file, "-o", "json")), "changed", "running")
	wantSnapshot(t, file)

	pushKubelet(t, file, before)
	home.restore(t, file, before)
	home.stop(t, file)
	home.restore(t, file, before) // the snapshot has the memory too, so the VM runs again
	home.stop(t, file)
	wantVM(t, oneVM(t, ok(t, "vm", "delete", "--yes", "-c", file, "-o", "json")), "changed", "absent")
	home.wantNothing(t, started)
	if got := hashFile(t, image); got != imageHash {
		t.Errorf("the image changed: %s, was %s", got, imageHash)
	}
}

// wantHostKey checks that the guest agent reports the host key of the guest's SSH server, and that no
// contact has pinned a host key yet.
func wantHostKey(t *testing.T, folder string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder, "known_hosts")); err == nil {
		t.Error("a host key was pinned before the first contact")
	}
	store, err := vm.OpenStore("")
	if err != nil {
		t.Fatal(err)
	}
	record, err := store.Get(vmName)
	if err != nil {
		t.Fatal(err)
	}
	const path, limit = `C:\ProgramData\ssh\ssh_host_ed25519_key.pub`, 1 << 10
	files, err := qemu.New(qemu.Options{}).GuestFiles(t.Context(), record.Machine, limit, path, `C:\none`)
	if err != nil || len(files) != 1 {
		t.Fatalf("files of the guest: %q, %v", files, err)
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(files[path])
	if err != nil {
		t.Fatal(err)
	}
	fingerprint := vmguest.HostKey + ssh.FingerprintSHA256(key)
	if serial := readText(t, filepath.Join(folder, "serial.log")); !strings.Contains(serial, fingerprint) {
		t.Errorf("the agent reports %q, and the guest's serial port:\n%s", files[path], serial)
	}
}

// vmHome has the folders of a user who has no VMs yet.
type vmHome struct{ folder string }

// newVMHome makes the folders, and sets the environment variables with which swdt uses them. At the
// end of the test, it deletes the VMs that are left.
func newVMHome(t *testing.T) vmHome {
	t.Helper()
	home := vmHome{t.TempDir()}
	for variable, name := range map[string]string{
		"XDG_DATA_HOME": "data", "XDG_RUNTIME_DIR": "run", "XDG_CACHE_HOME": "cache", "XDG_STATE_HOME": "state",
	} {
		folder := filepath.Join(home.folder, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv(variable, folder)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range []string{"serial.log", "qemu.log"} {
				text, err := os.ReadFile(filepath.Join(home.machines(), vmName, name))
				t.Logf("%s (%v):\n%s", name, err, text)
			}
		}
		for _, left := range decoded[vmReports](t, ok(t, "vm", "list", "-o", "json")).VMs {
			ok(t, "vm", "delete", "--yes", "-n", left.Name)
		}
	})
	return home
}

func (h vmHome) machines() string { return filepath.Join(h.folder, "data", "swdt", "machines") }
func (h vmHome) cd() string       { return filepath.Join(h.folder, "config.iso") }

// nodeFile writes the node file of the VM. The VM's CD does not contain the VM's key yet.
func (h vmHome) nodeFile(t *testing.T, image string) string {
	t.Helper()
	h.writeCD(t, vmguest.Settings{})
	text := fmt.Sprintf(`apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata:
  name: %s
spec:
  credentials:
    username: %s
  machine:
    driver: qemu
    image:
      disk: %q
      drivers: %q # the guest's configuration
    cpus: 1
    memory: 512Mi
    disk: 2Gi
    diskBus: virtio
    accelerator: tcg
    network:
      adapter: virtio
  setup:
    hosts:
      - address: 10.0.0.10
        names: [registry.example]
  kubernetes:
    provisioners:
%s`, vmName, vmguest.User, image, h.cd(),
		provisioner("kubelet", "1.29.0", lab(t, "kubelet-v1.29.0.exe"), kubeletExe, ""))
	file := filepath.Join(h.folder, "node.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// writeCD replaces the guest's configuration.
func (h vmHome) writeCD(t *testing.T, s vmguest.Settings) {
	t.Helper()
	if err := os.Rename(vmguest.ConfigCD(t, s), h.cd()); err != nil {
		t.Fatal(err)
	}
}

// start starts the VM and waits for its SSH server.
func (h vmHome) start(t *testing.T, file string) result {
	t.Helper()
	r := swdtWithin(t, bootLimit+vmOverhead,
		"vm", "start", "--wait", "--timeout", bootLimit.String(), "-c", file, "-o", "json")
	if r.code != 0 {
		t.Fatalf("the VM does not start: exit code %d", r.code)
	}
	return r
}

// restore restores the snapshot, and checks that the node has the state with which the snapshot was
// saved.
func (h vmHome) restore(t *testing.T, file string, before kubelet) {
	t.Helper()
	restored := oneVM(t, ok(t, "vm", "snapshot", "restore", "clean", "--yes", "-c", file, "-o", "json"))
	wantVM(t, restored, "changed", "running")
	if diff := cmp.Diff(before, kubeletOf(t, file)); diff != "" {
		t.Errorf("kubelet of the snapshot (-) and after it was restored (+):\n%s", diff)
	}
	if got := setUp(t, file); got != "unchanged" {
		t.Errorf("setup after the snapshot was restored: %s, want unchanged", got)
	}
}

// stop stops the VM, and checks that its process has ended.
func (h vmHome) stop(t *testing.T, file string) {
	t.Helper()
	wantVM(t, oneVM(t, ok(t, "vm", "stop", "-c", file, "-o", "json")), "changed", "stopped")
	stopped := oneVM(t, ok(t, "vm", "list", "-o", "json"))
	wantVM(t, stopped, "ok", "stopped")
	if left := h.processes(t); stopped.PID != 0 || len(left) != 0 {
		t.Errorf("the stopped VM has a process: %+v, %v", stopped, left)
	}
}

// processes returns the IDs of all processes whose command lines contain the test's folder.
func (h vmHome) processes(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatalf("list the processes: %d, %v", len(files), err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte(h.folder)) {
			continue // the process has ended, or does not belong to the test
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// files returns the paths of the wanted files below a folder of the test.
func (h vmHome) files(t *testing.T, folder string, wanted func(fs.FileMode) bool) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(h.folder, folder), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && wanted(entry.Type()) {
			paths = append(paths, strings.TrimPrefix(path, h.folder))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func (h vmHome) sockets(t *testing.T) []string {
	t.Helper()
	return h.files(t, ".", func(mode fs.FileMode) bool { return mode&fs.ModeSocket != 0 })
}

// wantNothing checks that the deleted VM has left no process, socket, port or file.
func (h vmHome) wantNothing(t *testing.T, was vmReport) {
	t.Helper()
	if list := decoded[vmReports](t, ok(t, "vm", "list", "-o", "json")); len(list.VMs) != 0 {
		t.Errorf("VMs are left: %+v", list.VMs)
	}
	if left := h.processes(t); len(left) != 0 {
		t.Errorf("processes are left: %v", left)
	}
	if left := h.sockets(t); len(left) != 0 {
		t.Errorf("sockets are left: %q", left)
	}
	any := func(fs.FileMode) bool { return true }
	if left := append(h.files(t, "data", any), h.files(t, "run", any)...); len(left) != 0 {
		t.Errorf("files are left: %q", left)
	}
	if entries, err := os.ReadDir(h.machines()); err != nil || len(entries) != 1 {
		t.Errorf("the folder of VMs has %v (%v), want .locks only", entries, err)
	}
	if conn, err := net.DialTimeout("tcp", was.Address, time.Second); err == nil {
		conn.Close()
		t.Errorf("something listens at %s, which was the VM's address", was.Address)
	}
}

// oneVM returns the only VM of a result.
func oneVM(t *testing.T, r result) vmReport {
	t.Helper()
	reports := decoded[vmReports](t, r)
	if len(reports.VMs) != 1 || reports.VMs[0].Name != vmName {
		t.Fatalf("%+v, want VM %s alone", reports.VMs, vmName)
	}
	return reports.VMs[0]
}

func wantVM(t *testing.T, vm vmReport, result, state string) {
	t.Helper()
	want := vm
	want.Result, want.State, want.Reason = result, state, ""
	if diff := cmp.Diff(want, vm); diff != "" {
		t.Fatalf("the VM (-want +got):\n%s", diff)
	}
}

func wantSnapshot(t *testing.T, file string) {
	t.Helper()
	type snapshot struct {
		Name   string
		Memory bool
	}
	list := decoded[struct{ Snapshots []snapshot }](t, ok(t, "vm", "snapshot", "list", "-c", file, "-o", "json"))
	if diff := cmp.Diff([]snapshot{{Name: "clean", Memory: true}}, list.Snapshots); diff != "" {
		t.Errorf("the snapshots (-want +got):\n%s", diff)
	}
}

// setUp runs swdt setup and returns its result.
func setUp(t *testing.T, file string) string {
	t.Helper()
	done := decoded[struct {
		Nodes []struct {
			Result string
			Steps  []struct{ Name, State string }
		}
	}](t, ok(t, "setup", "-c", file, "-o", "json"))
	if len(done.Nodes) != 1 || len(done.Nodes[0].Steps) != 1 {
		t.Fatalf("%+v, want one step on one node", done)
	}
	return done.Nodes[0].Result
}

// kubelet is the part of a kubelet's status that a snapshot preserves.
type kubelet struct {
	Version, SHA256, Drift, State string
	PID                           uint32
}

// kubeletOf returns the kubelet that swdt status reports.
func kubeletOf(t *testing.T, file string) kubelet {
	t.Helper()
	status := decoded[struct {
		Nodes []struct {
			Components []struct {
				Name, SHA256, Version, Drift string
				Service                      struct {
					State string
					PID   uint32
				}
			}
			PendingJournal bool
		}
	}](t, ok(t, "status", "-c", file, "-o", "json"))
	if len(status.Nodes) != 1 || status.Nodes[0].PendingJournal {
		t.Fatalf("%+v, want one node without an unfinished transaction", status)
	}
	for _, c := range status.Nodes[0].Components {
		if c.Name == "kubelet" {
			return kubelet{c.Version, c.SHA256, c.Drift, c.Service.State, c.Service.PID}
		}
	}
	t.Fatalf("%+v, want a kubelet", status)
	return kubelet{}
}

// pushKubelet pushes the node file's kubelet onto a node with another kubelet.
func pushKubelet(t *testing.T, file string, before kubelet) {
	t.Helper()
	source := hashFile(t, lab(t, "kubelet-v1.29.0.exe"))
	switch {
	case before.Drift != "binary":
		t.Fatalf("%+v, want a kubelet that differs from the node file's", before)
	case before.State != "running":
		t.Fatalf("%+v, want a kubelet that runs", before)
	case before.SHA256 == source:
		t.Fatalf("%+v, want another kubelet", before)
	}
	pushed := decoded[report](t, ok(t, "push", "-c", file, "-o", "json"))
	switch {
	case pushed.Summary.Changed != 1:
		t.Fatalf("%d nodes are changed, want 1: %+v", pushed.Summary.Changed, pushed)
	case len(pushed.Nodes) != 1:
		t.Fatalf("%d nodes, want 1: %+v", len(pushed.Nodes), pushed)
	case len(pushed.Nodes[0].Components) != 1:
		t.Fatalf("%d components, want 1: %+v", len(pushed.Nodes[0].Components), pushed)
	}
	c := pushed.Nodes[0].Components[0]
	replaced := []string{"replaced", before.SHA256, source}
	if diff := cmp.Diff(replaced, []string{c.Action, c.PreviousSHA256, c.SHA256}); diff != "" {
		t.Errorf("the action, the old and the new binary (-want +got):\n%s", diff)
	}
	after := kubeletOf(t, file)
	want := kubelet{Version: "v1.29.0", SHA256: source, Drift: "none", State: "running", PID: after.PID}
	if diff := cmp.Diff(want, after); diff != "" || after.PID == before.PID {
		t.Errorf("kubelet after the push, with process %d before it (-want +got):\n%s", before.PID, diff)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
