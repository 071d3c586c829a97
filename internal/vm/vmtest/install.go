package vmtest

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/wait"
)

// signsLimit bounds the wait for a sign of a VM.
const signsLimit = time.Minute

// installer returns the driver as an Installer. It skips the test if the driver cannot install
// Windows.
func (f Fixture) installer(t *testing.T) vm.Installer {
	t.Helper()
	installer, is := f.Driver.(vm.Installer)
	if has := f.Driver.Capabilities().Installs; is != has {
		t.Fatalf("capability Installs is %t, and it is an Installer: %t", has, is)
	}
	if !is {
		t.Skip("the driver does not install")
	}
	return installer
}

// observed verifies the signs of a VM that runs, is reset, and crashes.
func observed(t *testing.T, f Fixture) {
	ctx, d, m := t.Context(), f.installer(t), f.created(t, "observed")
	_, err := d.Observe(ctx, m)
	fails(t, "observe a stopped VM", err, vm.ErrStopped)
	accelerator, err := d.BestAccelerator(ctx, m)
	check(t, err)
	if accelerator == "" {
		t.Error("the accelerator has no name")
	}
	check(t, d.Start(ctx, m))
	observer, err := d.Observe(ctx, m)
	check(t, err)
	signs, err := observer.Look(ctx)
	check(t, err)
	if signs.State != vm.Running || signs.Resets != 0 || signs.Reason != "" {
		t.Errorf("a VM that runs: %+v", signs)
	}
	if d.Capabilities().Screenshots {
		if _, err := png.Decode(bytes.NewReader(signs.Screen)); err != nil {
			t.Errorf("the screen is no PNG: %v", err)
		}
	}
	check(t, observer.Close())
	// Restart uses the same connection as the observer, so the observer was closed before.
	check(t, d.Restart(ctx, m))

	observer, err = d.Observe(ctx, m)
	check(t, err)
	f.Crash(t, m)
	check(t, wait.Condition{Name: "the sign of the VM's end", Interval: 50 * time.Millisecond, Limit: signsLimit,
		Look: func(ctx context.Context) error {
			if signs, err = observer.Look(ctx); err != nil {
				return wait.Stop(err)
			}
			return errOf(signs.State == vm.Running)
		}}.Wait(ctx))
	check(t, observer.Close())
	_, err = d.Serial(ctx, m, 0)
	check(t, err)
	_, err = d.Serial(ctx, m, 1<<40)
	check(t, err)
}

// published verifies that the disk of a VM becomes an image over which other VMs can be laid.
func published(t *testing.T, f Fixture) {
	ctx, d := t.Context(), f.installer(t)
	m := f.Machine(t, "published")
	m.Image = vm.Image{}
	folder := filepath.Join(m.Folder, "..", "image")
	check(t, os.MkdirAll(folder, 0o700))
	_, err := d.Publish(ctx, m, folder)
	fails(t, "publish an absent VM", err, vm.ErrAbsent)
	check(t, d.Create(ctx, m))
	f.Write(t, m, "installed")
	check(t, d.Start(ctx, m))
	_, err = d.Publish(ctx, m, folder)
	fails(t, "publish a running VM", err, vm.ErrRunning)
	check(t, d.Kill(ctx, m))
	files, err := d.Publish(ctx, m, folder)
	check(t, err)
	f.is(t, m, vm.Absent)
	check(t, d.Delete(ctx, m))
	f.leavesNothing(t, m)
	for _, name := range []string{files.Disk, files.Vars} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s is not write-once: %v, %v", name, info, err)
		}
	}

	over := f.Machine(t, "over")
	over.Image = vm.Image{Base: filepath.Join(folder, files.Disk), Vars: filepath.Join(folder, files.Vars)}
	check(t, d.Create(ctx, over))
	if got := f.Read(t, over); got != "installed" {
		t.Errorf("a VM over the image reads %q", got)
	}
	f.Write(t, over, "changed")
	_, err = d.Publish(ctx, over, folder)
	fails(t, "publish a layer", err, vm.ErrUnsupported)
	second := f.Machine(t, "second")
	second.Image = over.Image
	check(t, d.Create(ctx, second))
	if got := f.Read(t, second); got != "installed" {
		t.Errorf("one VM's writes reach another: %q", got)
	}
	check(t, d.Start(ctx, second))
	f.is(t, second, vm.Running)
}
