package hyperv

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// askInterval is the pause between two requests to shut down. A guest that is still starting
	// refuses the first requests.
	askInterval = 3 * time.Second
	// maxDrift bounds the difference between the stored time of a start and the time that follows
	// from Hyper-V's uptime. If the difference is larger, the VM was started again.
	maxDrift = 2 * time.Minute
)

// state returns the state of a VM and, if it is paused, the reason. The names are those of the enumeration VMState of
// the module Hyper-V. If the guest hibernates, Hyper-V turns the VM off.
func (one machine) state() (vm.State, string) {
	switch one.State {
	case "Off", "Hibernated", "Saved", "FastSaved", "OffCritical", "SavedCritical", "FastSavedCritical":
		return vm.Stopped, ""
	case "Running", "Starting", "Stopping", "Reset", "ForceShutdown", "ForceReboot":
		return vm.Running, ""
	case "Paused":
		return vm.Paused, "a person has paused it; `Resume-VM` continues it"
	case "Pausing", "Resuming":
		return vm.Paused, "it is being paused or resumed"
	case "Saving", "FastSaving":
		return vm.Paused, "its state is being saved"
	case "RunningCritical", "PausedCritical", "StartingCritical", "StoppingCritical", "ResetCritical", "SavingCritical",
		"FastSavingCritical", "PausingCritical", "ResumingCritical":
		return vm.Paused, "its disk is full or cannot be read; free some space"
	}
	return vm.Paused, fmt.Sprintf("Hyper-V reports %.40q", one.State)
}

// executes reports whether the VM has a process.
func (one machine) executes() bool {
	state, _ := one.state()
	return state == vm.Running || state == vm.Paused
}

// Status reports the VM's state.
func (d *Driver) Status(ctx context.Context, m vm.Machine) (vm.Status, error) {
	now, kept, err := d.find(ctx, m)
	if errors.Is(err, vm.ErrAbsent) {
		return vm.Status{State: vm.Absent}, nil
	}
	if err != nil {
		return vm.Status{}, err
	}
	state, reason := now.state()
	status := vm.Status{State: state, Reason: reason}
	if now.executes() {
		status.Accelerator, status.Since = Name, kept.since(now.Uptime)
	}
	return status, nil
}

// since returns when a VM was started. This is the time that swdt has stored, unless the uptime (in
// seconds) shows that the VM was started again later.
func (r record) since(uptime float64) time.Time {
	reported := time.Now().Add(-time.Duration(uptime * float64(time.Second))).Truncate(time.Second)
	if reported.Sub(r.Since).Abs() < maxDrift {
		return r.Since
	}
	return reported
}

// Start starts the VM.
func (d *Driver) Start(ctx context.Context, m vm.Machine) error {
	now, kept, err := d.find(ctx, m)
	if err != nil {
		return err
	}
	if now.executes() {
		return vm.ErrRunning
	}
	return d.start(ctx, m, now, kept)
}

func (d *Driver) start(ctx context.Context, m vm.Machine, now machine, kept record) error {
	kept.ID, kept.Since = now.ID, time.Now()
	if err := d.do(ctx, "start the VM", "start", now.argument()); err != nil {
		return err
	}
	return writeRecord(m, kept)
}

// Stop asks the guest to shut down, through its integration services, and repeats the request until
// the VM has ended.
func (d *Driver) Stop(ctx context.Context, m vm.Machine) error {
	var last error
	err := wait.Condition{
		Name: "the end of the VM", Interval: askInterval,
		Look: func(ctx context.Context) error {
			now, _, err := d.find(ctx, m)
			switch {
			case errors.Is(err, vm.ErrAbsent):
				return nil
			case err != nil:
				return wait.StopIf(ctx.Err() == nil, err)
			case !now.executes():
				return nil
			}
			if state, reason := now.state(); state == vm.Paused {
				return wait.Stop(fmt.Errorf("%w: it is paused: %s", vm.ErrIgnored, reason))
			}
			// Stop-VM returns once the guest has shut down, or refuses while the guest starts.
			last = d.do(ctx, "ask the guest to shut down", "stop", now.argument())
			if last != nil {
				return last
			}
			now, _, err = d.find(ctx, m)
			if err == nil && !now.executes() {
				return nil
			}
			return vm.ErrIgnored
		},
	}.Wait(ctx)
	if err != nil && ctx.Err() != nil && !errors.Is(err, vm.ErrIgnored) {
		return fmt.Errorf("%w: %w; end it at once with --force", vm.ErrIgnored, err)
	}
	return err
}

// Kill ends the VM at once.
func (d *Driver) Kill(ctx context.Context, m vm.Machine) error {
	now, _, err := d.find(ctx, m)
	if errors.Is(err, vm.ErrAbsent) {
		return nil
	}
	if err != nil || !now.executes() {
		return err
	}
	return d.turnOff(ctx, now)
}

// turnOff ends a VM at once.
func (d *Driver) turnOff(ctx context.Context, now machine) error {
	return d.do(ctx, "end the VM", "turnOff", now.argument())
}

// Restart resets the VM.
func (d *Driver) Restart(ctx context.Context, m vm.Machine) error {
	now, err := d.running(ctx, m)
	if err != nil {
		return err
	}
	return d.do(ctx, "reset the VM", "restart", now.argument())
}

// running returns a VM that executes, or ErrStopped.
func (d *Driver) running(ctx context.Context, m vm.Machine) (machine, error) {
	now, _, err := d.find(ctx, m)
	if err == nil && !now.executes() {
		err = vm.ErrStopped
	}
	return now, err
}
