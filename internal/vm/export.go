package vm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// DiskFormat is the format of a disk's file.
type DiskFormat string

const (
	QCOW2 DiskFormat = "qcow2" // QEMU, KubeVirt, OpenStack
	VHDX  DiskFormat = "vhdx"  // Hyper-V, Azure Stack HCI
)

// Exporter is implemented by drivers that can write a VM's disk into one file.
type Exporter interface {
	// Room returns the bytes that Export needs at most.
	Room(ctx context.Context, m Machine, format DiskFormat) (int64, error)
	// Export writes the disk of a stopped VM to a new file that needs no other file. During the
	// work, it reports the fraction that it has written, from 0 to 1, by calls of done. If Export
	// fails, it may leave a part of the file.
	Export(ctx context.Context, m Machine, file string, format DiskFormat, done func(fraction float64)) error
}

// exporter calls the given function with a stopped VM and its Exporter, and holds the VM's lock
// meanwhile. It returns an error if the driver cannot export disks or the VM is not stopped.
func (s *Machines) exporter(ctx context.Context, name string, work func(Machine, Exporter) error) error {
	return s.looked(ctx, name, func(record Record, driver Driver) error {
		exporter, can := driver.(Exporter)
		if !can {
			return Unsupported(driver.Name(), "export a disk")
		}
		status, err := driver.Status(ctx, record.Machine)
		switch {
		case err != nil:
			return err
		case status.State != Stopped:
			return fmt.Errorf("the disk is in use, since the VM is %s; stop the VM first", status.State)
		}
		return work(record.Machine, exporter)
	})
}

// Room returns the bytes that Export of a stopped VM needs at most.
func (s *Machines) Room(ctx context.Context, name string, format DiskFormat) (bytes int64, err error) {
	err = s.exporter(ctx, name, func(m Machine, e Exporter) (err error) {
		bytes, err = e.Room(ctx, m, format)
		return err
	})
	return bytes, err
}

// progressParts is the number of steps in which the progress of an export is shown.
const progressParts = 10_000

// Export writes the disk of a stopped VM to a new file that needs no other file. It shows the
// progress as a part of the given number of bytes. If Export fails, it may leave a part of the
// file.
func (s *Machines) Export(
	ctx context.Context, name, file string, format DiskFormat, bytes int64, r ui.Reporter,
) error {
	return s.exporter(ctx, name, func(m Machine, e Exporter) error {
		progress := r.Transfer(string(format), bytes)
		defer progress.End()
		var shown int64
		show := func(now int64) {
			if now > shown {
				progress.Add(now - shown)
				shown = now
			}
		}
		err := e.Export(ctx, m, file, format, func(fraction float64) {
			show(int64(fraction*progressParts) * (bytes / progressParts))
		})
		if err == nil {
			show(bytes)
		}
		return err
	})
}

// stoppedInterval is the pause between two looks at a VM whose guest shuts down.
const stoppedInterval = 500 * time.Millisecond

// errStillRuns is the result of a look at a VM whose guest has not shut down yet.
var errStillRuns = errors.New("it runs")

// AwaitStopped waits until the guest of a VM has shut down by itself. ctx bounds the wait. The
// error is a *NotRunningError if the VM is neither running nor stopped, for example because it
// crashed.
func (s *Machines) AwaitStopped(ctx context.Context, name string) error {
	return wait.Condition{
		Name: "VM " + name + " to shut down", Interval: stoppedInterval,
		Look: func(ctx context.Context) error {
			return s.looked(ctx, name, func(record Record, driver Driver) error {
				status, err := driver.Status(ctx, record.Machine)
				switch {
				case err != nil:
					return wait.Stop(err)
				case status.State == Running:
					return errStillRuns
				case status.State == Stopped:
					return driver.Stop(ctx, record.Machine) // removes the sockets of the ended VM
				}
				return wait.Stop(&NotRunningError{name, status.State})
			})
		},
	}.Wait(ctx)
}
