package vmtest

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm"
)

func capabilities(t *testing.T, f Fixture) {
	if f.Driver.Name() == "" {
		t.Error("the driver has no name")
	}
	has := f.Driver.Capabilities()
	if has.Create == f.adopts() {
		t.Error("a driver either makes VMs or adopts them")
	}
	if _, installs := f.Driver.(vm.Installer); installs != has.Installs {
		t.Errorf("capability Installs is %t, and it is an Installer: %t", has.Installs, installs)
	}
	if has.Create && len(has.Networks) == 0 {
		t.Error("the driver knows no network")
	}
	for _, p := range f.Driver.Check(t.Context(), f.Machine(t, "checked")) {
		if p.Check == "" || p.What == "" || p.Severity == "" || p.Remedy == "" || p.Where == "" {
			t.Errorf("an incomplete finding: %+v", p)
		}
	}
}

func absent(t *testing.T, f Fixture) {
	ctx, d, m := t.Context(), f.Driver, f.Machine(t, "absent")
	f.is(t, m, vm.Absent)
	fails(t, "start", d.Start(ctx, m), vm.ErrAbsent)
	fails(t, "save", d.Save(ctx, m, "one"), vm.ErrAbsent)
	fails(t, "restore", d.Restore(ctx, m, "one"), vm.ErrNoSnapshot)
	check(t, d.Stop(ctx, m))
	check(t, d.Kill(ctx, m))
	check(t, d.Delete(ctx, m))
	f.is(t, m, vm.Absent)
}

func created(t *testing.T, f Fixture) {
	ctx, d, m := t.Context(), f.Driver, f.created(t, "created")
	if status := f.is(t, m, vm.Stopped); status.PID != 0 {
		t.Errorf("a stopped VM has the process %d", status.PID)
	}
	f.Write(t, m, "kept")
	fails(t, "create again", d.Create(ctx, m), vm.ErrExists)
	if got := f.Read(t, m); got != "kept" {
		t.Errorf("the disk holds %q after a second Create", got)
	}
	f.asStopped(t, m)
	check(t, d.Stop(ctx, m))
	check(t, d.Kill(ctx, m))
	f.is(t, m, vm.Stopped)

	check(t, d.Delete(ctx, m))
	f.is(t, m, vm.Absent)
	f.leavesNothing(t, m)
	check(t, d.Delete(ctx, m))
	check(t, d.Create(ctx, m))
	if got := f.Read(t, m); (got == "kept") != f.adopts() {
		t.Errorf("after Delete and Create, the disk holds %q", got)
	}
}

// adopted verifies that an adopted VM continues to run after Delete, and that it can be adopted
// again.
func adopted(t *testing.T, f Fixture) {
	if !f.adopts() {
		return
	}
	ctx, d, m := t.Context(), f.Driver, f.running(t, "adopted")
	check(t, d.Delete(ctx, m))
	f.is(t, m, vm.Absent)
	f.leavesNothing(t, m)
	fails(t, "start", d.Start(ctx, m), vm.ErrAbsent)
	check(t, d.Stop(ctx, m))
	check(t, d.Kill(ctx, m))
	check(t, d.Create(ctx, m))
	status, err := d.Status(ctx, m)
	check(t, err)
	if status.State != vm.Running {
		t.Errorf("it is %s after it was forgotten", status.State)
	}
	known, err := d.(vm.Adopter).Adopt(ctx, m)
	check(t, err)
	if diff := cmp.Diff(m, known); diff != "" {
		t.Errorf("a running VM is adopted differently (-stopped +running):\n%s", diff)
	}
	m.Domain, m.UUID = "no such VM", "00000000-0000-4000-8000-000000000000"
	_, err = d.(vm.Adopter).Adopt(ctx, m)
	fails(t, "adopt", err, vm.ErrAbsent)
}

// asStopped checks that the actions for running VMs are refused.
func (f Fixture) asStopped(t *testing.T, m vm.Machine) {
	t.Helper()
	ctx, d := t.Context(), f.Driver
	fails(t, "restart", d.Restart(ctx, m), vm.ErrStopped)
	_, err := d.Addresses(ctx, m)
	fails(t, "addresses", err, vm.ErrStopped)
	_, err = d.Consoles(ctx, m)
	fails(t, "consoles", err, vm.ErrStopped)
	if d.Capabilities().Screenshots {
		fails(t, "screenshot", d.Screenshot(ctx, m, new(discard)), vm.ErrStopped)
	}
	if d.Capabilities().Keys {
		fails(t, "keys", d.SendKeys(ctx, m, []string{"ret"}), vm.ErrStopped)
	}
}

// leavesNothing checks that a VM's folder is empty or gone.
func (f Fixture) leavesNothing(t *testing.T, m vm.Machine) {
	t.Helper()
	entries, err := os.ReadDir(m.Folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for _, e := range entries {
		t.Errorf("Delete left %s", e.Name())
	}
}

func life(t *testing.T, f Fixture) {
	ctx, d, m := t.Context(), f.Driver, f.created(t, "life")
	before := time.Now().Truncate(time.Second)
	check(t, d.Start(ctx, m))
	first := f.is(t, m, vm.Running)
	if first.Since.Before(before) || first.Since.After(time.Now()) {
		t.Errorf("it runs since %v; it was started after %v", first.Since, before)
	}
	fails(t, "start again", d.Start(ctx, m), vm.ErrRunning)
	if !f.adopts() {
		fails(t, "delete", d.Delete(ctx, m), vm.ErrRunning)
	}
	fails(t, "create", d.Create(ctx, m), vm.ErrExists)
	if diff := cmp.Diff(first, f.is(t, m, vm.Running)); diff != "" {
		t.Errorf("refused actions changed the status (-before +after):\n%s", diff)
	}
	if f.Booted != nil {
		f.Booted(t, m)
	}
	check(t, d.Restart(ctx, m))
	if again := f.is(t, m, vm.Running); again.PID != first.PID {
		t.Errorf("a restart replaced process %d by %d", first.PID, again.PID)
	}

	f.stop(t, m)
	f.is(t, m, vm.Stopped)
	f.asStopped(t, m)
	check(t, d.Start(ctx, m))
	f.is(t, m, vm.Running)
	check(t, d.Kill(ctx, m))
	f.is(t, m, vm.Stopped)
	check(t, d.Kill(ctx, m))
	f.stop(t, m)
	check(t, d.Delete(ctx, m))
	f.is(t, m, vm.Absent)
	f.leavesNothing(t, m)
}

func ignored(t *testing.T, f Fixture) {
	m := f.Machine(t, "ignored")
	f.Ignore(t, &m)
	ctx, d := t.Context(), f.Driver
	check(t, d.Create(ctx, m))
	check(t, d.Start(ctx, m))
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	fails(t, "stop", d.Stop(short, m), vm.ErrIgnored)
	f.is(t, m, vm.Running)
	check(t, d.Kill(ctx, m))
	f.is(t, m, vm.Stopped)
}

func crashed(t *testing.T, f Fixture) {
	ctx, d, m := t.Context(), f.Driver, f.running(t, "crashed")
	state := vm.Stopped
	if d.Capabilities().Crashes {
		state = vm.Crashed
	}
	for _, acknowledge := range []func(context.Context, vm.Machine) error{d.Stop, d.Kill} {
		f.Crash(t, m)
		f.is(t, m, state)
		f.asStopped(t, m)
		f.is(t, m, state)
		check(t, acknowledge(ctx, m))
		f.is(t, m, vm.Stopped)
		check(t, d.Start(ctx, m))
		f.is(t, m, vm.Running)
	}
	f.Crash(t, m)
	check(t, d.Start(ctx, m))
	f.is(t, m, vm.Running)
	f.Crash(t, m)
	check(t, d.Delete(ctx, m))
	f.is(t, m, vm.Absent)
	f.leavesNothing(t, m)
}

func rebooted(t *testing.T, f Fixture) {
	m := f.running(t, "rebooted")
	f.Reboot(t, m)
	f.is(t, m, vm.Stopped)
	f.asStopped(t, m)
	check(t, f.Driver.Start(t.Context(), m))
	f.is(t, m, vm.Running)
}

// canceled verifies that an action whose context has ended fails and changes nothing.
func canceled(t *testing.T, f Fixture) {
	d, m := f.Driver, f.Machine(t, "canceled")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	fails(t, "create", d.Create(over, m), context.Canceled)
	f.is(t, m, vm.Absent)
	f.leavesNothing(t, m)
	check(t, d.Create(t.Context(), m))
	fails(t, "start", d.Start(over, m), context.Canceled)
	f.is(t, m, vm.Stopped)
	fails(t, "save", d.Save(over, m, "one"), context.Canceled)
	saved, err := d.Snapshots(t.Context(), m)
	check(t, err)
	if len(saved) > 0 {
		t.Errorf("a canceled Save left %v", saved)
	}
}

// oddNames checks that the driver takes odd names as plain text, never as paths, options or
// patterns.
func oddNames(t *testing.T, f Fixture) {
	ctx, d, m := t.Context(), f.Driver, f.created(t, `Größe 8, a=b "c" ${d}`)
	odd := []string{"with space", "größe", "1", "-d", "../up", "a,b=c", "%s", "A", "a"}
	for _, name := range odd {
		check(t, d.Save(ctx, m, name))
	}
	saved, err := d.Snapshots(ctx, m)
	check(t, err)
	var names []string
	for _, s := range saved {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff(odd, names); diff != "" {
		t.Errorf("snapshots (-expected +got):\n%s", diff)
	}
	for _, name := range slices.Backward(odd) {
		check(t, d.Restore(ctx, m, name))
		check(t, d.RemoveSnapshot(ctx, m, name))
	}
	fails(t, "save without a name", errOf(d.Save(ctx, m, "") != nil), errRefused)
	check(t, d.Start(ctx, m))
	f.is(t, m, vm.Running)
	check(t, d.Kill(ctx, m))
	check(t, d.Delete(ctx, m))
	f.leavesNothing(t, m)
}

var errRefused = errors.New("refused")

func errOf(refused bool) error {
	if refused {
		return errRefused
	}
	return nil
}

// discard is a stream for results that the test does not want.
type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }
