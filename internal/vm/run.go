package vm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

// StopLimit is the default time that a guest has to shut down.
const StopLimit = 3 * time.Minute

// startTries bounds how often Start tries to start a VM while other processes take the chosen ports.
const startTries = 5

// IncompleteError reports a VM whose creation was interrupted.
type IncompleteError struct{ Name string }

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("the creation of VM %s was interrupted; `swdt vm create` makes it anew, "+
		"`swdt vm delete` removes it", e.Name)
}

// UnknownError reports that no VM has this name. It unwraps to ErrUnknown.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no VM %s; `swdt vm create --start` makes it, `swdt vm list` lists your VMs", e.Name)
}

func (e *UnknownError) Unwrap() error { return ErrUnknown }

// IgnoredError reports a guest that did not shut down in time.
type IgnoredError struct {
	Name  string
	After time.Duration
	Err   error
}

func (e *IgnoredError) Error() string {
	return fmt.Sprintf("VM %s still runs: its guest has not shut down within %s; `swdt vm console` shows it, "+
		"`swdt vm stop --force` ends it at once",
		e.Name, ui.Seconds(e.After))
}

func (e *IgnoredError) Unwrap() error { return e.Err }

// with calls the given function with the record and the driver of a complete VM, and holds the VM's
// lock meanwhile.
func (s *Machines) with(ctx context.Context, name string, work func(Record, Driver) (Report, error)) (Report, error) {
	if err := CheckName(name); err != nil {
		return Report{}, err
	}
	if _, err := s.store.Get(name); errors.Is(err, ErrUnknown) {
		return Report{}, &UnknownError{name} // a VM that does not exist gets no lock
	}
	held, err := s.store.lock(ctx, name, s.command, lockLimit)
	if err != nil {
		return Report{}, err
	}
	defer held.unlock()
	record, err := s.store.Get(name)
	switch {
	case errors.Is(err, ErrUnknown):
		return Report{}, &UnknownError{name}
	case err != nil:
		return Report{}, err
	case !record.Complete:
		return Report{}, &IncompleteError{name}
	}
	driver, err := s.driver(record.Driver)
	if err != nil {
		return Report{}, err
	}
	return work(record, driver)
}

// Start starts a VM and returns once it executes. A VM that runs is left as it is.
func (s *Machines) Start(ctx context.Context, name string, r ui.Reporter) (Report, error) {
	return s.with(ctx, name, func(record Record, driver Driver) (Report, error) {
		status, err := driver.Status(ctx, record.Machine)
		if err != nil {
			return Report{}, err
		}
		if status.State == Running {
			if err := s.emptyFirstCD(ctx, &record, driver); err != nil {
				return Report{}, fmt.Errorf("start VM %s: %w", name, err)
			}
			return s.report(ctx, record, "nothing to do: the VM runs already"), nil
		}
		return s.start(ctx, record, driver, r)
	})
}

// start starts a VM that does not run. The caller holds its lock.
func (s *Machines) start(ctx context.Context, record Record, driver Driver, r ui.Reporter) (Report, error) {
	if err := s.attach(ctx, record, r); err != nil {
		return Report{}, err
	}
	r.Step("starting VM %s", record.Name)
	if err := s.emptyFirstCD(ctx, &record, driver); err != nil {
		return Report{}, fmt.Errorf("start VM %s: %w", record.Name, err)
	}
	// A program of an interrupted start may hold the VM's ports. Stop ends it; it does nothing else to a stopped VM.
	if status, err := driver.Status(ctx, record.Machine); err != nil {
		return Report{}, err
	} else if status.State != Paused && status.State != Running {
		if err := driver.Stop(ctx, record.Machine); err != nil {
			return Report{}, fmt.Errorf("start VM %s: %w", record.Name, err)
		}
	}
	for range startTries {
		moved, err := s.movePorts(&record)
		if err != nil {
			return Report{}, err
		}
		if moved {
			r.Info("another program has a port of the VM: SSH is forwarded from port %d now", record.sshPort())
		}
		s.starts.begin(record.Name)
		err = driver.Start(ctx, record.Machine)
		if err == nil {
			return s.began(ctx, record, "started"), nil
		}
		if !errors.Is(err, ErrPortTaken) {
			return Report{}, fmt.Errorf("start VM %s: %w", record.Name, err)
		}
	}
	return Report{}, fmt.Errorf("start VM %s: other programs took its ports %d times; try again", record.Name, startTries)
}

// movePorts gives new ports to the forwards whose ports other programs use, and writes the record
// if a port has changed. If another program uses a port that the node file sets, movePorts returns an
// error that names the port and its forward.
func (s *Machines) movePorts(record *Record) (moved bool, err error) {
	var fixed error
	again := func(f Forward) bool {
		if isFree(f.HostPort) {
			return false
		}
		if slices.Contains(record.FixedPorts, f.Name) {
			fixed = fmt.Errorf("start VM %s: another program listens on port %d of 127.0.0.1, which "+
				"spec.machine.network.ports gives to %s; end the program, or make the VM with another port",
				record.Name, f.HostPort, f.Name)
			return false
		}
		moved = true
		return true
	}
	others, err := s.store.All()
	if err != nil {
		return false, err
	}
	record.Network.Forwards = slices.Clone(record.Network.Forwards)
	err = errors.Join(record.choosePorts(portsOf(others), again), fixed)
	if err != nil || !moved {
		return moved, err
	}
	return true, writeRecord(record.Folder, *record)
}

// StopOptions select how to end a VM.
type StopOptions struct {
	// Force ends the VM at once, as a power cut does.
	Force bool
	// Limit is the time that the guest has to shut down; 0 means StopLimit.
	Limit time.Duration
}

// Stop ends a VM. The error is an *IgnoredError if the guest does not shut down.
func (s *Machines) Stop(ctx context.Context, name string, o StopOptions, r ui.Reporter) (Report, error) {
	return s.with(ctx, name, func(record Record, driver Driver) (Report, error) {
		status, err := driver.Status(ctx, record.Machine)
		if err != nil {
			return Report{}, err
		}
		if status.State != Running && status.State != Paused {
			// A crashed VM counts as stopped from now on.
			if err := driver.Stop(ctx, record.Machine); err != nil {
				return Report{}, err
			}
			if status.State == Crashed {
				return s.changed(ctx, record, "its process had died: it counts as stopped now"), nil
			}
			return s.report(ctx, record, "nothing to do: it does not run"), nil
		}
		if err := s.stop(ctx, record, driver, o, r); err != nil {
			return Report{}, err
		}
		if err := s.emptyFirstCD(ctx, &record, driver); err != nil {
			return Report{}, fmt.Errorf("VM %s is stopped, but the CD of its first start, which has the password, is not "+
				"emptied: %w", record.Name, err)
		}
		return s.changed(ctx, record, "stopped"), nil
	})
}

func (s *Machines) stop(ctx context.Context, record Record, driver Driver, o StopOptions, r ui.Reporter) error {
	if o.Force {
		r.Step("ending VM %s", record.Name)
		if err := driver.Kill(ctx, record.Machine); err != nil {
			return fmt.Errorf("end VM %s: %w", record.Name, err)
		}
		return nil
	}
	if o.Limit == 0 {
		o.Limit = StopLimit
	}
	r.Step("waiting for VM %s to shut down", record.Name)
	begun := time.Now()
	bounded, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	err := driver.Stop(bounded, record.Machine)
	switch {
	case errors.Is(err, ErrIgnored):
		return &IgnoredError{Name: record.Name, After: time.Since(begun), Err: errors.Join(err, context.Cause(ctx))}
	case err != nil:
		return fmt.Errorf("stop VM %s: %w", record.Name, err)
	}
	return nil
}

// Restart shuts the guest down and starts the VM again; with Force it resets the VM at once. It
// starts a VM that neither runs nor is paused.
func (s *Machines) Restart(ctx context.Context, name string, o StopOptions, r ui.Reporter) (Report, error) {
	return s.with(ctx, name, func(record Record, driver Driver) (Report, error) {
		status, err := driver.Status(ctx, record.Machine)
		switch {
		case err != nil:
			return Report{}, err
		case status.State != Running && status.State != Paused:
			return s.start(ctx, record, driver, r)
		case o.Force:
			r.Step("resetting VM %s", name)
			s.starts.begin(name)
			if err := driver.Restart(ctx, record.Machine); err != nil {
				return Report{}, fmt.Errorf("reset VM %s: %w", name, err)
			}
			return s.changed(ctx, record, "reset"), nil
		}
		if err := s.stop(ctx, record, driver, o, r); err != nil {
			return Report{}, err
		}
		return s.start(ctx, record, driver, r)
	})
}
