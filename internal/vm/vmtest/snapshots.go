package vmtest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm"
)

// snapshots tests the snapshots of a stopped VM.
func snapshots(t *testing.T, f Fixture) {
	ctx, d, m := t.Context(), f.Driver, f.created(t, "snapshots")
	fails(t, "restore", d.Restore(ctx, m, "first"), vm.ErrNoSnapshot)
	fails(t, "remove", d.RemoveSnapshot(ctx, m, "first"), vm.ErrNoSnapshot)
	f.saved(t, m)

	before := time.Now().Truncate(time.Second)
	for _, name := range []string{"first", "second"} {
		f.Write(t, m, name)
		check(t, d.Save(ctx, m, name))
	}
	f.Write(t, m, "present")
	fails(t, "save again", d.Save(ctx, m, "first"), vm.ErrSnapshotExists)
	for _, s := range f.saved(t, m, "first", "second") {
		if s.Memory || s.Size < 0 || s.Taken.Before(before) || s.Taken.After(time.Now()) {
			t.Errorf("snapshot of a stopped VM: %+v", s)
		}
	}
	if got := f.Read(t, m); got != "present" {
		t.Errorf("saving changed the disk to %q", got)
	}

	check(t, d.Restore(ctx, m, "first"))
	f.is(t, m, vm.Stopped)
	if got := f.Read(t, m); got != "first" {
		t.Errorf("restored first, and the disk holds %q", got)
	}
	f.saved(t, m, "first", "second")
	check(t, d.RemoveSnapshot(ctx, m, "first"))
	fails(t, "restore", d.Restore(ctx, m, "first"), vm.ErrNoSnapshot)
	fails(t, "remove again", d.RemoveSnapshot(ctx, m, "first"), vm.ErrNoSnapshot)
	f.saved(t, m, "second")

	// A name can be used again once its snapshot was removed.
	check(t, d.Save(ctx, m, "first"))
	f.saved(t, m, "second", "first")

	// Restoring a snapshot without memory stops a running VM.
	check(t, d.Start(ctx, m))
	check(t, d.Restore(ctx, m, "second"))
	f.is(t, m, vm.Stopped)
	if got := f.Read(t, m); got != "second" {
		t.Errorf("restored second, and the disk holds %q", got)
	}
	check(t, d.Delete(ctx, m))
	f.leavesNothing(t, m)
	f.saved(t, m)
}

// saved verifies the names of a VM's snapshots and returns the snapshots.
func (f Fixture) saved(t *testing.T, m vm.Machine, expected ...string) []vm.Snapshot {
	t.Helper()
	all, err := f.Driver.Snapshots(t.Context(), m)
	check(t, err)
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff(expected, names); diff != "" {
		t.Errorf("snapshots (-expected +got):\n%s", diff)
	}
	return all
}

// liveSnapshots tests the snapshots of a running VM.
func liveSnapshots(t *testing.T, f Fixture) {
	ctx, d, m := t.Context(), f.Driver, f.running(t, "live snapshots")
	if !d.Capabilities().LiveSnapshots {
		fails(t, "save", d.Save(ctx, m, "live"), vm.ErrUnsupported)
		f.saved(t, m)
		f.is(t, m, vm.Running)
		return
	}
	check(t, d.Save(ctx, m, "live"))
	first := f.is(t, m, vm.Running)
	fails(t, "save again", d.Save(ctx, m, "live"), vm.ErrSnapshotExists)
	if all := f.saved(t, m, "live"); !all[0].Memory || all[0].Size < 0 {
		t.Errorf("snapshot of a running VM: %+v", all[0])
	}
	check(t, d.Restore(ctx, m, "live"))
	if again := f.is(t, m, vm.Running); again.PID != first.PID {
		t.Errorf("restoring replaced process %d by %d", first.PID, again.PID)
	}

	check(t, d.Kill(ctx, m))
	check(t, d.Save(ctx, m, "stopped"))
	f.saved(t, m, "live", "stopped")
	check(t, d.Restore(ctx, m, "live"))
	f.is(t, m, vm.Running)
	check(t, d.RemoveSnapshot(ctx, m, "live"))
	f.saved(t, m, "stopped")
	fails(t, "restore", d.Restore(ctx, m, "live"), vm.ErrNoSnapshot)
	f.is(t, m, vm.Running)
	f.stop(t, m)
}
