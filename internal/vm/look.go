package vm

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/swdt-dev/swdt/internal/ui"
)

// maxSnapshotName is the longest name of a snapshot in bytes.
const maxSnapshotName = 128

// explained adds the VM's name to an error of a driver, and the remedy if one is known.
func explained(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrStopped):
		return &NotRunningError{name, Stopped}
	case errors.Is(err, ErrNoSnapshot):
		return fmt.Errorf("VM %s: %w; `swdt vm snapshot list` lists those that exist", name, err)
	case errors.Is(err, ErrSnapshotExists):
		return fmt.Errorf("VM %s: %w; `swdt vm snapshot remove` removes it, or use another name", name, err)
	}
	return fmt.Errorf("VM %s: %w", name, err)
}

// looked calls the given function with the record and the driver of a complete VM, and holds the
// VM's lock meanwhile. It passes the function's error to explained, which adds the VM's name and
// the remedy.
func (s *Machines) looked(ctx context.Context, name string, look func(Record, Driver) error) error {
	_, err := s.with(ctx, name, func(record Record, driver Driver) (Report, error) {
		return Report{}, explained(name, look(record, driver))
	})
	return err
}

// Addresses returns the addresses at which a running VM's SSH server may be, the best
// first; there is at least one.
func (s *Machines) Addresses(ctx context.Context, name string) (all []Address, err error) {
	_, err = s.with(ctx, name, func(record Record, driver Driver) (Report, error) {
		all, err = running(ctx, record, driver)
		return Report{}, err
	})
	return all, err
}

// Screenshot writes the VM's screen as PNG.
func (s *Machines) Screenshot(ctx context.Context, name string, png io.Writer) error {
	return s.looked(ctx, name, func(record Record, driver Driver) error {
		return driver.Screenshot(ctx, record.Machine, png)
	})
}

// SendKeys presses keys one after the other.
func (s *Machines) SendKeys(ctx context.Context, name string, keys []string) error {
	return s.looked(ctx, name, func(record Record, driver Driver) error {
		return driver.SendKeys(ctx, record.Machine, keys)
	})
}

// Consoles returns the addresses at which a person can look at the VM.
func (s *Machines) Consoles(ctx context.Context, name string) (all []Console, err error) {
	err = s.looked(ctx, name, func(record Record, driver Driver) (err error) {
		all, err = driver.Consoles(ctx, record.Machine)
		return err
	})
	return all, err
}

// Snapshots lists the snapshots of a VM, the oldest first.
func (s *Machines) Snapshots(ctx context.Context, name string) (all []Snapshot, err error) {
	err = s.looked(ctx, name, func(record Record, driver Driver) (err error) {
		all, err = driver.Snapshots(ctx, record.Machine)
		return err
	})
	return all, err
}

// Save saves the VM's state under a name.
func (s *Machines) Save(ctx context.Context, name, snapshot string, r ui.Reporter) (Report, error) {
	if err := CheckName(snapshot); err != nil || len(snapshot) > maxSnapshotName {
		return Report{}, fmt.Errorf("%.60q is not a name for a snapshot; use printable characters, at most %d bytes",
			snapshot, maxSnapshotName)
	}
	return s.snapshot(ctx, name, "saved as "+snapshot, func(record Record, driver Driver) error {
		r.Step("saving VM %s as %s", name, snapshot)
		if err := s.emptyFirstCD(ctx, &record, driver); err != nil {
			return err
		}
		return driver.Save(ctx, record.Machine, snapshot)
	})
}

// Restore returns a VM to the state of a snapshot.
func (s *Machines) Restore(ctx context.Context, name, snapshot string, r ui.Reporter) (Report, error) {
	return s.snapshot(ctx, name, "restored from "+snapshot, func(record Record, driver Driver) error {
		r.Step("restoring VM %s from %s", name, snapshot)
		return driver.Restore(ctx, record.Machine, snapshot)
	})
}

// RemoveSnapshot removes a snapshot of a VM and frees its space.
func (s *Machines) RemoveSnapshot(ctx context.Context, name, snapshot string, r ui.Reporter) (Report, error) {
	return s.snapshot(ctx, name, "snapshot "+snapshot+" removed", func(record Record, driver Driver) error {
		r.Step("removing snapshot %s of VM %s", snapshot, name)
		return driver.RemoveSnapshot(ctx, record.Machine, snapshot)
	})
}

func (s *Machines) snapshot(
	ctx context.Context, name, message string, work func(Record, Driver) error,
) (Report, error) {
	return s.with(ctx, name, func(record Record, driver Driver) (Report, error) {
		if err := explained(name, work(record, driver)); err != nil {
			return Report{}, err
		}
		return s.changed(ctx, record, message), nil
	})
}
