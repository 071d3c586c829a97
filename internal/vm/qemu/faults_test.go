package qemu_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu"
)

// state returns a VM's state.
func state(t *testing.T, d *qemu.Driver, m vm.Machine) vm.State {
	t.Helper()
	status, err := d.Status(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return status.State
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Each command of QEMU fails in each way: refused, unanswered, answered by QEMU's death.
// Afterwards the state is true, and Kill and Delete leave nothing.
func TestEveryCommandFails(t *testing.T) {
	type action func(context.Context, *qemu.Driver, vm.Machine) error
	for _, test := range []struct {
		name     string
		commands []string
		do       action
	}{
		{"Start", []string{"qmp_capabilities", "query-status"},
			func(ctx context.Context, d *qemu.Driver, m vm.Machine) error { return d.Start(ctx, m) }},
		{"Stop", []string{"qmp_capabilities", "system_powerdown"},
			func(ctx context.Context, d *qemu.Driver, m vm.Machine) error { return d.Stop(ctx, m) }},
		{"Restart", []string{"system_reset", "cont"},
			func(ctx context.Context, d *qemu.Driver, m vm.Machine) error { return d.Restart(ctx, m) }},
		{"Save", []string{"snapshot-delete", "snapshot-save", "query-jobs", "job-dismiss"},
			func(ctx context.Context, d *qemu.Driver, m vm.Machine) error { return d.Save(ctx, m, "x") }},
		{"Screenshot", []string{"screendump"},
			func(ctx context.Context, d *qemu.Driver, m vm.Machine) error { return d.Screenshot(ctx, m, io.Discard) }},
		{"SendKeys", []string{"send-key"},
			func(ctx context.Context, d *qemu.Driver, m vm.Machine) error {
				return d.SendKeys(ctx, m, []string{"ret"})
			}},
	} {
		for _, command := range test.commands {
			for _, mode := range []string{"error", "die", "hang"} {
				t.Run(test.name+" "+command+" "+mode, func(t *testing.T) {
					t.Parallel()
					failsAndRecovers(t, command+" "+mode, test.name == "Start", test.do)
				})
			}
		}
	}
}

// failsAndRecovers performs an action while a command fails.
func failsAndRecovers(t *testing.T, script string, start bool,
	do func(context.Context, *qemu.Driver, vm.Machine) error,
) {
	t.Helper()
	d, fail := fakeDriver(t)
	m := fakeRecord(t, d, "fake")
	check(t, d.Create(t.Context(), m))
	if !start {
		check(t, d.Start(t.Context(), m))
	}
	fail(script)
	ctx := t.Context()
	if strings.HasSuffix(script, "hang") {
		ctx = untilHung(t, m)
	}
	err := do(ctx, d, m)
	died := strings.HasSuffix(script, "die")
	stopped := died && (script == "system_powerdown die" || script == "qmp_capabilities die") // Stop wants no more
	if err == nil && !stopped {
		t.Error("the fault went unnoticed")
	}
	fail("")
	expected := vm.Running
	if start || stopped {
		expected = vm.Stopped
	} else if died {
		expected = vm.Crashed
	}
	if got := state(t, d, m); got != expected {
		t.Errorf("the VM is %s, expected %s (%v)", got, expected, err)
	}
	if saved, err := d.Snapshots(t.Context(), m); err != nil || len(saved) > 0 {
		t.Errorf("snapshots: %v, %v", saved, err)
	}
	if start {
		leaksNothing(t, m)
	}
	check(t, d.Kill(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	status, err := d.Status(t.Context(), m)
	if err != nil || status.State != vm.Running {
		t.Errorf("afterwards the VM is %s (%s), %v", status.State, status.Reason, err)
	}
}

// An interrupted start ends a QEMU that has not yet written the ID of its process into run/pid.
func TestAStartThatIsInterruptedAtOnce(t *testing.T) {
	d, fail := fakeDriver(t)
	m := fakeRecord(t, d, "fake")
	check(t, d.Create(t.Context(), m))
	fail("start hang")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() { ended <- d.Start(ctx, m) }()
	eventually(t, "QEMU has started", func() bool {
		return slices.ContainsFunc(processesOf(t, m), func(line string) bool { return strings.Contains(line, "-pidfile") })
	})
	interrupt()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	leaksNothing(t, m)
	fail("")
	check(t, d.Start(t.Context(), m))
}

func TestAFailedJobLeavesNoSnapshot(t *testing.T) {
	d, fail := fakeDriver(t)
	m := fakeRecord(t, d, "job")
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	fail("job no room")
	if err := d.Save(t.Context(), m, "x"); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("got %v", err)
	}
	if saved, err := d.Snapshots(t.Context(), m); err != nil || len(saved) > 0 {
		t.Errorf("%v, %v", saved, err)
	}
}

// Each state of QEMU in which the guest does not execute is Paused with its reason, and
// cannot be stopped by asking.
func TestPausedHasAReason(t *testing.T) {
	d, fail := fakeDriver(t)
	m := fakeRecord(t, d, "paused")
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	for _, s := range []string{"guest-panicked", "io-error", "internal-error", "paused", "prelaunch", "suspended", "new"} {
		fail("state " + s)
		status, err := d.Status(t.Context(), m)
		check(t, err)
		if status.State != vm.Paused || status.Reason == "" {
			t.Errorf("%s: state %s, reason %q; want %s with a reason", s, status.State, status.Reason, vm.Paused)
		}
		if status.PID == 0 || status.Since.IsZero() {
			t.Errorf("%s: process %d since %s, want both", s, status.PID, status.Since)
		}
		if err := d.Stop(t.Context(), m); !errors.Is(err, vm.ErrIgnored) {
			t.Errorf("%s: stop: %v", s, err)
		}
	}
}

// A screen that is no picture is not handed on.
func TestAScreenThatIsNoPicture(t *testing.T) {
	d, fail := fakeDriver(t)
	m := fakeRecord(t, d, "screen")
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	fail("screen GIF89a")
	var out strings.Builder
	if err := d.Screenshot(t.Context(), m, &out); err == nil || out.Len() > 0 {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

// A pid file whose number another process has: that process is not the VM, and survives.
func TestAReusedPID(t *testing.T) {
	d, _ := fakeDriver(t)
	m := fakeRecord(t, d, "reused")
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	kill9(t, d, m)
	innocent := exec.CommandContext(t.Context(), "sleep", "60")
	check(t, innocent.Start())
	defer func() {
		_ = innocent.Process.Kill()
		_ = innocent.Wait()
	}()
	write(t, filepath.Join(m.Folder, "run", "pid"), strconv.Itoa(innocent.Process.Pid))
	changeRecord(t, m, "tpm", innocent.Process.Pid)
	if got := state(t, d, m); got != vm.Crashed {
		t.Errorf("the VM is %s", got)
	}
	check(t, d.Kill(t.Context(), m))
	if line, err := os.ReadFile("/proc/" + strconv.Itoa(innocent.Process.Pid) + "/cmdline"); err != nil || len(line) == 0 {
		t.Error("another process was killed")
	}
	if got := state(t, d, m); got != vm.Stopped {
		t.Errorf("the VM is %s", got)
	}
	for _, content := range []string{"", "x", "-1", "0", "1", "99999999999999999999", "12 34"} {
		check(t, d.Start(t.Context(), m))
		kill9(t, d, m)
		write(t, filepath.Join(m.Folder, "run", "pid"), content)
		if got := state(t, d, m); got == vm.Running {
			t.Errorf("%q: the VM is %s", content, got)
		}
		check(t, d.Kill(t.Context(), m))
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Sockets and records of a run that has died do not hinder the next one.
func TestStaleSockets(t *testing.T) {
	d, _ := fakeDriver(t)
	m := fakeRecord(t, d, "stale")
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	kill9(t, d, m)
	if _, err := os.Stat(filepath.Join(m.Folder, "run", "qmp.sock")); err != nil {
		t.Fatal(err)
	}
	check(t, d.Start(t.Context(), m))
	if got := state(t, d, m); got != vm.Running {
		t.Errorf("the VM is %s", got)
	}
	// A damaged record is an error, never a guess.
	check(t, d.Kill(t.Context(), m))
	check(t, os.MkdirAll(filepath.Join(m.Folder, "run"), 0o700))
	write(t, filepath.Join(m.Folder, "run", "started.json"), "{")
	if _, err := d.Status(t.Context(), m); err == nil {
		t.Error("a damaged record was believed")
	}
	check(t, os.RemoveAll(filepath.Join(m.Folder, "run")))
}

// QEMU that ends at once is an error with its message, and leaves nothing.
func TestQEMUEndsAtOnce(t *testing.T) {
	d, fail := fakeDriver(t)
	m := fakeRecord(t, d, "at once")
	check(t, d.Create(t.Context(), m))
	fail("start die")
	if err := d.Start(t.Context(), m); err == nil || !strings.Contains(err.Error(), "it cannot start") {
		t.Errorf("got %v", err)
	}
	if got := state(t, d, m); got != vm.Stopped {
		t.Errorf("the VM is %s", got)
	}
	if _, err := os.Stat(filepath.Join(m.Folder, "run")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the run is left: %v", err)
	}
	leaksNothing(t, m)
}

// A port that another process has is an error of its own, so that callers choose another
// port.
func TestATakenPort(t *testing.T) {
	d, fail := fakeDriver(t)
	m := fakeRecord(t, d, "port")
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	defer taken.Close()
	m.Network.Forwards[0].HostPort = taken.Addr().(*net.TCPAddr).Port
	check(t, d.Create(t.Context(), m))
	fail("start die")
	if err := d.Start(t.Context(), m); !errors.Is(err, vm.ErrPortTaken) {
		t.Errorf("got %v", err)
	}
	leaksNothing(t, m)
}

// Long folders get short sockets, which Kill and Delete remove.
func TestALongFolder(t *testing.T) {
	d, _ := fakeDriver(t)
	run := shortTemp(t)
	t.Setenv("XDG_RUNTIME_DIR", run)
	m := fakeRecord(t, d, "long")
	m.Folder = filepath.Join(m.Folder, strings.Repeat("ü", 60), "a,b")
	t.Cleanup(func() { check(t, errors.Join(d.Kill(context.Background(), m), d.Delete(context.Background(), m))) })
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	consoles, err := d.Consoles(t.Context(), m)
	check(t, err)
	if !strings.HasPrefix(consoles[0].Address, filepath.Join(run, "swdt")+"/") || len(consoles[0].Address) > 107 {
		t.Errorf("the sockets are at %s", consoles[0].Address)
	}
	t.Setenv("XDG_RUNTIME_DIR", "/elsewhere") // another swdt finds it nevertheless
	if got := state(t, d, m); got != vm.Running {
		t.Errorf("the VM is %s", got)
	}
	check(t, d.Kill(t.Context(), m))
	left, err := os.ReadDir(filepath.Join(run, "swdt"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// fakeImage returns a driver whose qemu-img is a shell script.
func fakeImage(t *testing.T, script string) *qemu.Driver {
	t.Helper()
	need(t, "qemu-system-x86_64", "qemu-img")
	path := filepath.Join(t.TempDir(), "qemu-img")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return qemu.New(qemu.Options{Image: path, Cache: t.TempDir()})
}

// A full disk at each step of Create leaves the folder as it was.
func TestCreateOnAFullDisk(t *testing.T) {
	for name, script := range map[string]string{
		"variables": `case $1 in convert) echo "qemu-img: No space left on device" >&2; exit 1;; esac; exec qemu-img "$@"`,
		"disk":      `case $1 in create) echo "qemu-img: No space left on device" >&2; exit 1;; esac; exec qemu-img "$@"`,
		"half":      `case $1 in create) echo half > "$5"; kill -9 $$;; esac; exec qemu-img "$@"`,
	} {
		d := fakeImage(t, script)
		m := record(t, d, name)
		err := d.Create(t.Context(), m)
		if err == nil || name != "half" && !strings.Contains(err.Error(), "No space left") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(m.Folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the folder is left: %v", name, err)
		}
		if got := state(t, d, m); got != vm.Absent {
			t.Errorf("%s: the VM is %s", name, got)
		}
		check(t, os.MkdirAll(m.Folder, 0o700))
		write(t, filepath.Join(m.Folder, "machine.json"), "{}")
		if d.Create(t.Context(), m) == nil {
			t.Errorf("%s: made", name)
		}
		left, err := filepath.Glob(filepath.Join(m.Folder, "*"))
		if diff := cmp.Diff([]string{filepath.Join(m.Folder, "machine.json")}, left); err != nil || diff != "" {
			t.Errorf("%s: left in the folder: %s", name, diff)
		}
		check(t, os.RemoveAll(m.Folder))
	}
}

// A snapshot of which a part fails is none.
func TestSaveOnAFullDisk(t *testing.T) {
	d := fakeImage(t, `case "$*" in *vars.qcow2)
	[ "$3" = -c ] && { echo "No space left on device" >&2; exit 1; };;
esac
exec qemu-img "$@"`)
	m := record(t, d, "save")
	check(t, d.Create(t.Context(), m))
	if err := d.Save(t.Context(), m, "x"); err == nil || !strings.Contains(err.Error(), "No space left") {
		t.Errorf("got %v", err)
	}
	if saved, err := d.Snapshots(t.Context(), m); err != nil || len(saved) > 0 {
		t.Errorf("%v, %v", saved, err)
	}
	out := tool(t, "qemu-img", "snapshot", "-l", filepath.Join(m.Folder, "disk.qcow2"))
	if strings.Contains(out, "swdt-") {
		t.Errorf("the disk keeps a part: %s", out)
	}
}

// The guest agent shuts the guest down and reports its addresses; the power button is not
// needed. An address of your machine that a hostile agent reports is left out.
func TestTheGuestAgent(t *testing.T) {
	d, fail := fakeDriver(t)
	m := fakeRecord(t, d, "agent")
	check(t, d.Create(t.Context(), m))
	check(t, d.Start(t.Context(), m))
	for reply, expected := range map[string][]string{
		`{"return":[{"ip-addresses":[{"ip-address":"10.0.2.15"}]}]}`:                      {"10.0.2.15"},
		`{"return":[{"ip-addresses":[{"ip-address":"127.0.0.1"},{"ip-address":"::1"}]}]}`: nil,
		`{"return":[{"ip-addresses":[{"ip-address":"` + ownAddress(t) + `"}]}]}`:          nil,
		`{"return":"` + strings.Repeat("x", 1<<20) + `"}`:                                 nil,
		`[[[[[[`: nil,
	} {
		fail("agent " + reply)
		known, err := d.Addresses(t.Context(), m)
		check(t, err)
		var got []string
		for _, a := range known {
			if a.Source == "guest agent" {
				got = append(got, a.IP.String())
			}
		}
		if diff := cmp.Diff(expected, got); diff != "" || known[0].Source != "forward" {
			t.Errorf("%.80s: %s\n%+v", reply, diff, known)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Stop(over, m); !errors.Is(err, vm.ErrIgnored) || state(t, d, m) != vm.Running {
		t.Errorf("without time: %v", err)
	}
	fail("agent {}\nsystem_powerdown error")
	check(t, d.Stop(t.Context(), m))
	if got := state(t, d, m); got != vm.Stopped {
		t.Errorf("the VM is %s", got)
	}
}

// ownAddress returns an address of this machine that is not the loopback's.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	check(t, err)
	for _, a := range all {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.IsGlobalUnicast() {
			return ip.String()
		}
	}
	return "127.0.0.1"
}
