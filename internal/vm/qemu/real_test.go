package qemu_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

// A VM with secure boot and a TPM starts on real firmware and a real swtpm. Its TPM's state
// is part of a snapshot, and swtpm ends with QEMU in every way.
func TestSecureBootAndTPM(t *testing.T) {
	d := driver(t)
	m := record(t, d, "secure")
	m.Firmware = vm.Firmware{SecureBoot: true, TPM: true}
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	check(t, d.Kill(t.Context(), m))
	leaksNothing(t, m)

	states, err := filepath.Glob(filepath.Join(m.Folder, "tpm", "*.permall"))
	if err != nil || len(states) == 0 {
		t.Fatalf("the TPM has no state: %v, %v", states, err)
	}
	saved, err := os.ReadFile(states[0])
	check(t, err)
	check(t, d.Save(t.Context(), m, "before"))
	write(t, states[0], "changed")
	check(t, d.Restore(t.Context(), m, "before"))
	if now, err := os.ReadFile(states[0]); err != nil || !bytes.Equal(now, saved) {
		t.Errorf("the TPM's state was not restored (%v)", err)
	}
	check(t, d.Start(t.Context(), m))
	kill9(t, d, m)
	check(t, d.Kill(t.Context(), m))
	leaksNothing(t, m)
}

// A restore that was interrupted between its two renames is finished by the next start.
func TestAnInterruptedRestoreOfATPM(t *testing.T) {
	d := driver(t)
	m := record(t, d, "interrupted")
	m.Firmware.TPM = true
	check(t, d.Create(t.Context(), m))
	write(t, filepath.Join(m.Folder, "tpm", "kept"), "state")
	check(t, os.Rename(filepath.Join(m.Folder, "tpm"), filepath.Join(m.Folder, "tpm.old")))
	check(t, d.Start(t.Context(), m))
	if got, err := os.ReadFile(filepath.Join(m.Folder, "tpm", "kept")); err != nil || string(got) != "state" {
		t.Errorf("%q, %v", got, err)
	}
}

// A CD of a VM that runs is replaced: QEMU opens the new file, and holds the old one no longer. That works again after
// it was interrupted, and snapshots of before and after can be restored.
func TestChangeDisc(t *testing.T) {
	d := driver(t)
	m := record(t, d, "changed")
	path := filepath.Join(t.TempDir(), "config.iso")
	write(t, path, strings.Repeat("A", 1<<20))
	m.Discs = []string{path}
	if err := d.ChangeDisc(t.Context(), m, 0); !errors.Is(err, vm.ErrStopped) {
		t.Errorf("a VM that does not run: %v", err)
	}
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	check(t, d.Save(t.Context(), m, "before"))
	status, err := d.Status(t.Context(), m)
	check(t, err)
	client := dialQEMU(t, m)
	for i, interrupt := range []func(){
		func() {},
		func() {
			for _, command := range []string{"blockdev-open-tray", "blockdev-remove-medium"} {
				check(t, client.Run(t.Context(), command, map[string]any{"id": "drive-cd0"}, nil))
			}
			check(t, client.Run(t.Context(), "blockdev-del", map[string]any{"node-name": "cd0"}, nil))
		},
	} {
		check(t, os.Remove(path))
		write(t, path, strings.Repeat(strconv.Itoa(i), 1<<20))
		if held := openFiles(t, status.PID); !slices.Contains(held, path+" (deleted)") {
			t.Fatalf("before: QEMU holds %q", held)
		}
		interrupt()
		check(t, d.ChangeDisc(t.Context(), m, 0))
		if held := openFiles(t, status.PID); !slices.Contains(held, path) || slices.Contains(held, path+" (deleted)") {
			t.Errorf("QEMU holds %q", held)
		}
		var drives []struct {
			Drive    string `json:"qdev"`
			TrayOpen bool   `json:"tray_open"`
			Inserted struct {
				Node string `json:"node-name"`
			} `json:"inserted"`
		}
		check(t, client.Run(t.Context(), "query-block", nil, &drives))
		for _, drive := range drives {
			if strings.HasSuffix(drive.Drive, "drive-cd0") && (drive.TrayOpen || drive.Inserted.Node != "cd0") {
				t.Errorf("the drive: %+v", drive)
			}
		}
	}
	check(t, client.Close())
	check(t, d.Save(t.Context(), m, "after"))
	check(t, d.Restore(t.Context(), m, "before"))
	check(t, d.Restore(t.Context(), m, "after"))
	if err := d.ChangeDisc(t.Context(), m, 1); err == nil {
		t.Error("a drive that the VM does not have")
	}
}

// dialQEMU connects to the control socket that swdt does not use in this test.
func dialQEMU(t *testing.T, m vm.Machine) *qmp.Client {
	t.Helper()
	client, err := qmp.Dial(t.Context(), filepath.Join(m.Folder, "run", "look.sock"))
	check(t, err)
	return client
}

// openFiles returns the paths of what a process has open.
func openFiles(t *testing.T, pid int) (paths []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	check(t, err)
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// The hardware for Windows without drivers: SATA, e1000e, and two discs.
func TestHardwareWithoutDrivers(t *testing.T) {
	d := driver(t)
	m := record(t, d, "sata")
	m.DiskBus, m.Network.Adapter = vm.SATA, vm.E1000E
	for _, name := range []string{"a.iso", "b, c.iso"} {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, strings.Repeat("\x00", 1<<20))
		m.Discs = append(m.Discs, path)
	}
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	if got := state(t, d, m); got != vm.Running {
		t.Errorf("the VM is %s", got)
	}
	check(t, d.Save(t.Context(), m, "live"))
	check(t, d.Restore(t.Context(), m, "live"))
}

// QEMU that dies while it saves leaves no snapshot, and a disk that starts again.
func TestQEMUDiesWhileItSaves(t *testing.T) {
	d := driver(t)
	m := record(t, d, "dies")
	check(t, d.Create(t.Context(), m))
	died := false
	for try := 0; try < 10 && !died; try++ {
		check(t, d.Start(t.Context(), m))
		before := size(t, m)
		saved := make(chan error, 1)
		go func() { saved <- d.Save(t.Context(), m, "x") }()
		ticker := time.NewTicker(200 * time.Microsecond)
		for limit := time.Now().Add(time.Minute); size(t, m) == before && time.Now().Before(limit); {
			<-ticker.C // until the memory is being written
		}
		ticker.Stop()
		kill9(t, d, m)
		if died = <-saved != nil; !died { // it was faster
			check(t, d.Kill(t.Context(), m))
			check(t, d.RemoveSnapshot(t.Context(), m, "x"))
		}
	}
	if !died {
		t.Fatal("no kill was fast enough")
	}
	if got := state(t, d, m); got != vm.Crashed {
		t.Errorf("the VM is %s", got)
	}
	if all, err := d.Snapshots(t.Context(), m); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
	check(t, d.Start(t.Context(), m))
	check(t, d.Save(t.Context(), m, "x"))
	check(t, d.Restore(t.Context(), m, "x"))
	if got := state(t, d, m); got != vm.Running {
		t.Errorf("the VM is %s", got)
	}
}

func size(t *testing.T, m vm.Machine) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(m.Folder, "disk.qcow2"))
	check(t, err)
	return info.Size()
}

// The memory of another QEMU is refused, with the versions, before anything is lost.
func TestASnapshotOfAnotherQEMU(t *testing.T) {
	d := driver(t)
	m := record(t, d, "version")
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	check(t, d.Save(t.Context(), m, "live"))
	records, err := filepath.Glob(filepath.Join(m.Folder, "snapshots", "*.json"))
	if err != nil || len(records) != 1 {
		t.Fatalf("%v, %v", records, err)
	}
	content, err := os.ReadFile(records[0])
	check(t, err)
	before, after, found := strings.Cut(string(content), `"version":"`)
	if !found {
		t.Fatalf("the record has no version: %s", content)
	}
	write(t, records[0], before+`"version":"6.2.0`+after[strings.Index(after, `"`):])
	for _, running := range []bool{true, false} {
		err := d.Restore(t.Context(), m, "live")
		if !errors.Is(err, vm.ErrUnsupported) || !strings.Contains(err.Error(), "6.2.0") {
			t.Errorf("running %t: %v", running, err)
		}
		if got := state(t, d, m); (got == vm.Running) != running {
			t.Errorf("the VM is %s", got)
		}
		check(t, d.Kill(t.Context(), m))
	}
}

// An overlay over a golden image of 10 GB takes the time of some small files.
func TestAnOverlayIsMadeInASecond(t *testing.T) {
	d := driver(t)
	golden := filepath.Join(t.TempDir(), "golden.qcow2")
	tool(t, "qemu-img", "create", "-q", "-f", "qcow2", golden, "10G")
	m := record(t, d, "overlay")
	m.Image.Base, m.Disk = golden, 64<<30
	begun := time.Now()
	check(t, d.Create(t.Context(), m))
	t.Logf("Create: %v", time.Since(begun))
	begun = time.Now()
	check(t, d.Start(t.Context(), m))
	t.Logf("Start: %v", time.Since(begun))
}

// The guest boots from the image, its serial port is logged, and a live snapshot brings it
// back without another boot.
func TestTheGuestBootsOnce(t *testing.T) {
	d := driver(t)
	m := record(t, d, "boots")
	m.Image.Base = guestDisk(t)
	check(t, d.Create(t.Context(), m))
	begun := time.Now()
	check(t, d.Start(t.Context(), m))
	boots := func() int {
		log, err := os.ReadFile(filepath.Join(m.Folder, "serial.log"))
		check(t, err)
		return strings.Count(string(log), strings.TrimSpace(guestUp))
	}
	eventually(t, "the guest is up", func() bool { return boots() == 1 })
	t.Logf("from Start to the guest: %v", time.Since(begun))
	begun = time.Now()
	check(t, d.Save(t.Context(), m, "up"))
	t.Logf("live Save: %v", time.Since(begun))
	begun = time.Now()
	check(t, d.Restore(t.Context(), m, "up"))
	t.Logf("live Restore: %v", time.Since(begun))
	check(t, d.Kill(t.Context(), m))
	begun = time.Now()
	check(t, d.Restore(t.Context(), m, "up"))
	t.Logf("live Restore of a stopped VM: %v", time.Since(begun))
	begun = time.Now()
	check(t, d.Stop(t.Context(), m))
	t.Logf("Stop: %v", time.Since(begun))
	if n := boots(); n != 0 { // the log is of the new process
		t.Errorf("the guest booted %d times after the restore", n)
	}
}

// The preview of the command is the command, before the VM is made and while it runs.
func TestCommandLineIsTheCommand(t *testing.T) {
	d := driver(t)
	m := record(t, d, "preview")
	before, err := d.CommandLine(m)
	check(t, err)
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	after, err := d.CommandLine(m)
	check(t, err)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
	status, err := d.Status(t.Context(), m)
	check(t, err)
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(status.PID), "cmdline"))
	check(t, err)
	if diff := cmp.Diff(after, strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")); diff != "" {
		t.Error(diff)
	}
}

// A start whose context ends leaves neither a process nor a file.
func TestACanceledStart(t *testing.T) {
	d, fail := fakeDriver(t)
	m := fakeRecord(t, d, "canceled")
	check(t, d.Create(t.Context(), m))
	fail("qmp_capabilities hang")
	if err := d.Start(untilHung(t, m), m); err == nil {
		t.Error("it started")
	}
	if got := state(t, d, m); got != vm.Stopped {
		t.Errorf("the VM is %s", got)
	}
	leaksNothing(t, m)
}

// Check names each missing part with a remedy, on this machine and on an empty one.
func TestCheck(t *testing.T) {
	d := driver(t)
	for _, p := range d.Check(t.Context(), vm.Machine{}) {
		t.Logf("%s %s: %s; %s (%s)", p.Severity, p.Check, p.What, p.Remedy, p.Evidence)
		if p.Check != "accelerator" || p.Severity != "warning" {
			t.Errorf("a finding on a machine that runs VMs: %+v", p)
		}
	}
	empty := qemu.New(qemu.Options{
		QEMU: "/no/qemu", Image: "/no/qemu-img", TPM: "/no/swtpm", Firmware: []string{"/no"}, Cache: t.TempDir(),
	})
	found := map[string]bool{}
	m := record(t, d, "checked")
	m.Firmware.TPM, m.Memory, m.Image.Base, m.Discs = true, 1<<50, "/no/image", []string{"/no/disc"}
	for _, p := range empty.Check(t.Context(), m) {
		found[p.Check] = true
		for field, text := range map[string]string{"What": p.What, "Remedy": p.Remedy, "Evidence": p.Evidence} {
			if text == "" {
				t.Errorf("%s is empty: %+v", field, p)
			}
		}
	}
	for _, check := range []string{"qemu", "qemu-img", "tpm", "firmware", "memory", "image", "disc"} {
		if !found[check] {
			t.Errorf("no finding %s in %v", check, found)
		}
	}
}
