package qemu_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

// actMark makes this test binary act as a swdt that works on a VM; its value is an act.
const actMark = "SWDT_ACT_ON_VM"

// act is a method of the driver that a swdt of its own calls.
type act struct {
	Method  string // save, start, stop or kill
	Options qemu.Options
	Machine vm.Machine
	Folder  string // of the machine
}

// in returns a process that acts, not started yet.
func (a act) in(t *testing.T) *exec.Cmd {
	t.Helper()
	a.Folder = a.Machine.Folder
	text, err := json.Marshal(a)
	check(t, err)
	swdt := exec.CommandContext(t.Context(), os.Args[0])
	swdt.Env = append(os.Environ(), actMark+"="+string(text))
	swdt.Stderr = os.Stderr
	return swdt
}

func actAsSwdt(text string) {
	var a act
	err := json.Unmarshal([]byte(text), &a)
	if err == nil {
		_, err = io.Copy(io.Discard, os.Stdin) // the test may still prepare something
	}
	if err == nil {
		a.Machine.Folder = a.Folder
		ctx, d := context.Background(), qemu.New(a.Options)
		switch a.Method {
		case "save":
			err = d.Save(ctx, a.Machine, "x")
		case "start":
			err = d.Start(ctx, a.Machine)
		case "stop":
			err = d.Stop(ctx, a.Machine)
		case "kill":
			err = d.Kill(ctx, a.Machine)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A swdt that is killed while QEMU saves the memory of a running VM leaves no snapshot, and a VM
// that runs. The next swdt saves, restores and removes snapshots as if nothing had happened.
func TestSwdtIsKilledWhileItSaves(t *testing.T) {
	d := driver(t)
	m := record(t, d, "orphan")
	m.Memory = 512 << 20 // its job takes long enough
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	const tries = 10
	left := ""
	for try := 0; try < tries && left == ""; try++ {
		if left = killedWhileSaving(t, m); left == "" { // the job was faster
			if err := d.RemoveSnapshot(t.Context(), m, "x"); !errors.Is(err, vm.ErrNoSnapshot) {
				check(t, err)
			}
		}
	}
	if left == "" {
		t.Fatalf("no kill of %d was fast enough", tries)
	}
	t.Logf("QEMU has the job of a swdt that is gone: %s", left)
	if all, err := d.Snapshots(t.Context(), m); err != nil || len(all) > 0 {
		t.Errorf("after the kill: %v, %v: want no snapshot", all, err)
	}
	check(t, d.Save(t.Context(), m, "x"))
	check(t, d.Restore(t.Context(), m, "x"))
	if got := state(t, d, m); got != vm.Running {
		t.Errorf("the VM is %s", got)
	}
	if jobs := jobsOf(t, m); jobs != "" {
		t.Errorf("jobs are left: %s", jobs)
	}
	check(t, d.RemoveSnapshot(t.Context(), m, "x"))
	check(t, d.Kill(t.Context(), m))
	list := tool(t, "qemu-img", "snapshot", "-l", filepath.Join(m.Folder, "disk.qcow2"))
	if strings.Contains(list, "swdt-") {
		t.Errorf("the disk keeps a part of a snapshot: %s", list)
	}
}

// killedWhileSaving kills a swdt once QEMU writes the memory, and returns the job that QEMU then
// has; "" if swdt has ended before.
func killedWhileSaving(t *testing.T, m vm.Machine) string {
	t.Helper()
	before := size(t, m)
	swdt := act{Method: "save", Machine: m}.in(t)
	check(t, swdt.Start())
	ticker := time.NewTicker(200 * time.Microsecond)
	defer ticker.Stop()
	for limit := time.Now().Add(time.Minute); size(t, m) == before && time.Now().Before(limit); {
		<-ticker.C
	}
	_ = swdt.Process.Kill() // it may have ended
	if swdt.Wait() == nil {
		return ""
	}
	return jobsOf(t, m)
}

// jobsOf returns QEMU's jobs, and "" if there are none.
func jobsOf(t *testing.T, m vm.Machine) string {
	t.Helper()
	client, err := qmp.Dial(t.Context(), filepath.Join(m.Folder, "run", "qmp.sock"))
	check(t, err)
	defer client.Close()
	var jobs []map[string]any
	check(t, client.Run(t.Context(), "query-jobs", nil, &jobs))
	if len(jobs) == 0 {
		return ""
	}
	return fmt.Sprint(jobs)
}

// The error of a restore describes what QEMU has done: a refused command changed nothing, and a
// failed job leaves the VM paused.
func TestARestoreThatFails(t *testing.T) {
	d, fail := fakeDriver(t)
	m := fakeRecord(t, d, "refused")
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	check(t, d.Save(t.Context(), m, "x"))
	for _, test := range []struct{ script, want, not string }{
		{"snapshot-load error", "the VM was not changed", "paused"},
		{"job no room\nstate restore-vm", "the VM is paused, maybe between two states", "not changed"},
		{"job no room", "the VM runs", "paused"},
		{"job-dismiss error", "the VM runs", "not changed"},
		{"job no room\nquery-status error", "`swdt vm status`", "paused"},
	} {
		fail(test.script)
		err := d.Restore(t.Context(), m, "x")
		if err == nil {
			t.Fatalf("%q: no error, want %q", test.script, test.want)
		}
		if text := err.Error(); !strings.Contains(text, test.want) || strings.Contains(text, test.not) {
			t.Errorf("%q: %v: want %q, not %q", test.script, err, test.want, test.not)
		}
	}
}

// The same with real QEMU, on a snapshot whose part in the disk is gone.
func TestARestoreOfALostSnapshot(t *testing.T) {
	d := driver(t)
	m := record(t, d, "lost")
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	check(t, d.Save(t.Context(), m, "x"))
	records, err := filepath.Glob(filepath.Join(m.Folder, "snapshots", "*.json"))
	if err != nil || len(records) != 1 {
		t.Fatalf("%v, %v", records, err)
	}
	client, err := qmp.Dial(t.Context(), filepath.Join(m.Folder, "run", "qmp.sock"))
	check(t, err)
	tag := strings.TrimSuffix(filepath.Base(records[0]), ".json")
	err = client.RunJob(t.Context(), "snapshot-delete", "test", map[string]any{"tag": tag, "devices": []string{"disk0"}})
	check(t, errors.Join(err, client.Close()))

	err = d.Restore(t.Context(), m, "x")
	t.Log(err)
	now := state(t, d, m)
	if err == nil || strings.Contains(err.Error(), "paused") != (now == vm.Paused) {
		t.Errorf("the VM is %s, and the error is %v", now, err)
	}
	check(t, d.Kill(t.Context(), m)) // as --force does
	check(t, d.Start(t.Context(), m))
}
