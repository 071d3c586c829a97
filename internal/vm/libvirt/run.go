package libvirt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// askInterval is the pause between two requests to shut down. A guest that is still starting
	// misses the first requests.
	askInterval = 3 * time.Second
	// lookInterval is the pause between two looks at a guest that shuts down.
	lookInterval = 250 * time.Millisecond
)

// activity is the state of a domain as libvirt reports it.
type activity struct {
	state  vm.State
	reason string
}

// executes reports whether the domain has a process.
func (a activity) executes() bool { return a.state == vm.Running || a.state == vm.Paused }

// activity asks for a domain's activity.
func (c *client) activity(domain libvirt.Domain) (activity, error) {
	state, reason, err := c.DomainGetState(domain, 0)
	if err != nil {
		return activity{}, fmt.Errorf("look at the domain: %w", err)
	}
	return activityOf(libvirt.DomainState(state), reason), nil
}

func activityOf(state libvirt.DomainState, reason int32) activity {
	switch state {
	case libvirt.DomainRunning, libvirt.DomainBlocked, libvirt.DomainShutdown:
		return activity{state: vm.Running}
	case libvirt.DomainPaused:
		return activity{vm.Paused, pauses(libvirt.DomainPausedReason(reason))}
	case libvirt.DomainPmsuspended:
		return activity{vm.Paused, "the guest sleeps"}
	case libvirt.DomainCrashed:
		return activity{vm.Paused, "the guest has panicked; `swdt vm restart --force` resets it"}
	case libvirt.DomainShutoff:
		switch libvirt.DomainShutoffReason(reason) {
		case libvirt.DomainShutoffCrashed:
			return activity{vm.Crashed, "its process died without being asked"}
		case libvirt.DomainShutoffFailed:
			return activity{vm.Crashed, "libvirt could not start it, or lost it"}
		}
		return activity{state: vm.Stopped}
	}
	return activity{vm.Paused, fmt.Sprintf("libvirt reports state %d", state)}
}

// pauses explains why a domain is paused.
func pauses(reason libvirt.DomainPausedReason) string {
	switch reason {
	case libvirt.DomainPausedUser:
		return "a person has paused it; `virsh resume` continues it"
	case libvirt.DomainPausedIoerror:
		return "your disk is full, or it cannot be read; free some space, then `virsh resume` continues it"
	case libvirt.DomainPausedSave, libvirt.DomainPausedDump, libvirt.DomainPausedSnapshot,
		libvirt.DomainPausedFromSnapshot:
		return "a snapshot is being saved or restored"
	case libvirt.DomainPausedCrashed:
		return "the guest has panicked; `swdt vm restart --force` resets it"
	case libvirt.DomainPausedStartingUp:
		return "its start has not ended"
	case libvirt.DomainPausedShuttingDown:
		return "it shuts down"
	}
	return "libvirt has paused it; `virsh resume` continues it"
}

// Status reports the domain's state.
func (d *Driver) Status(ctx context.Context, m vm.Machine) (vm.Status, error) {
	status, err := of(ctx, m, answerLimit, func(c *client, domain libvirt.Domain, kept record) (vm.Status, error) {
		now, err := c.activity(domain)
		if err != nil {
			return vm.Status{}, err
		}
		status := vm.Status{State: now.state, Reason: now.reason}
		if now.executes() {
			status.Since, status.Accelerator = kept.since(domain.ID), m.Accelerator
		}
		if now.state == vm.Crashed && kept.CrashSeen {
			status = vm.Status{State: vm.Stopped}
		}
		return status, nil
	})
	if errors.Is(err, vm.ErrAbsent) {
		return vm.Status{State: vm.Absent}, nil
	}
	return status, err
}

// Start starts the domain.
func (d *Driver) Start(ctx context.Context, m vm.Machine) error {
	begun, err := of(ctx, m, workLimit, func(c *client, domain libvirt.Domain, kept record) (record, error) {
		now, err := c.activity(domain)
		switch {
		case err != nil:
			return kept, err
		case now.state == vm.Paused:
			return kept, fmt.Errorf("%w, but paused: %s", vm.ErrRunning, now.reason)
		case now.executes():
			return kept, vm.ErrRunning
		}
		started, err := c.DomainCreateWithFlags(domain, 0)
		if err != nil {
			return kept, fmt.Errorf("libvirt starts the domain: %w", err)
		}
		return kept.begun(started.ID), nil
	})
	if err != nil {
		return err
	}
	return writeRecord(m, begun)
}

// Stop asks the guest to shut down, by its agent or its power button, and waits until the
// domain has ended.
func (d *Driver) Stop(ctx context.Context, m vm.Machine) error {
	_, err := of(ctx, m, workLimit, func(c *client, domain libvirt.Domain, kept record) (struct{}, error) {
		now, err := c.activity(domain)
		switch {
		case err != nil:
			return struct{}{}, err
		case now.state == vm.Paused:
			return struct{}{}, fmt.Errorf("%w: it is paused: %s", vm.ErrIgnored, now.reason)
		case now.executes():
			return struct{}{}, c.shutDown(ctx, domain)
		}
		return struct{}{}, seen(m, kept, now)
	})
	if err != nil && ctx.Err() != nil && !errors.Is(err, vm.ErrIgnored) {
		return fmt.Errorf("%w: it was asked until %w; end it at once with --force", vm.ErrIgnored, err)
	}
	return absentIsStopped(err)
}

// shutDown asks the guest to shut down, and repeats the request until the domain has ended.
func (c *client) shutDown(ctx context.Context, domain libvirt.Domain) error {
	var asked time.Time
	return wait.Condition{
		Name: "the end of the domain", Interval: lookInterval,
		Look: func(context.Context) error {
			now, err := c.activity(domain)
			switch {
			case err != nil:
				return wait.Stop(err)
			case !now.executes():
				return nil
			case time.Since(asked) < askInterval:
				return vm.ErrIgnored
			}
			asked = time.Now()
			// The domain may end during the request, which then fails; the next look sees the end.
			if err := c.DomainShutdownFlags(domain, 0); err != nil && !hasCode(err, libvirt.ErrOperationInvalid) {
				return fmt.Errorf("%w: %w", vm.ErrIgnored, err)
			}
			return vm.ErrIgnored
		},
	}.Wait(ctx)
}

// seen notes in libvirt.json that Stop or Kill was called on a crashed domain. From then on, Status
// reports the domain as stopped.
func seen(m vm.Machine, kept record, now activity) error {
	if now.state != vm.Crashed || kept.CrashSeen {
		return nil
	}
	kept.CrashSeen = true
	return writeRecord(m, kept)
}

func absentIsStopped(err error) error {
	if errors.Is(err, vm.ErrAbsent) {
		return nil
	}
	return err
}

// Kill ends the domain at once.
func (d *Driver) Kill(ctx context.Context, m vm.Machine) error {
	_, err := of(ctx, m, workLimit, func(c *client, domain libvirt.Domain, kept record) (struct{}, error) {
		now, err := c.activity(domain)
		if err != nil || !now.executes() {
			return struct{}{}, errors.Join(err, seen(m, kept, now))
		}
		if err := c.DomainDestroyFlags(domain, libvirt.DomainDestroyDefault); err != nil &&
			!hasCode(err, libvirt.ErrOperationInvalid) {
			return struct{}{}, fmt.Errorf("libvirt ends the domain: %w", err)
		}
		return struct{}{}, nil
	})
	return absentIsStopped(err)
}

// Restart resets the domain, and resumes it if it is paused, for example because its guest has
// panicked.
func (d *Driver) Restart(ctx context.Context, m vm.Machine) error {
	_, err := running(ctx, m, workLimit, func(c *client, domain libvirt.Domain, _ record) (struct{}, error) {
		err := c.DomainReset(domain, 0)
		if hasCode(err, libvirt.ErrNoSupport) { // for example, libvirt's test driver cannot reset
			err = c.DomainReboot(domain, libvirt.DomainRebootDefault)
		}
		if err != nil {
			return struct{}{}, fmt.Errorf("libvirt resets the domain: %w", err)
		}
		now, err := c.activity(domain)
		if err == nil && now.state == vm.Paused {
			err = c.DomainResume(domain)
		}
		return struct{}{}, err
	})
	return err
}

// running is like the function of, but returns ErrStopped if the domain does not execute.
func running[T any](
	ctx context.Context, m vm.Machine, limit limit, work func(*client, libvirt.Domain, record) (T, error),
) (T, error) {
	return of(ctx, m, limit, func(c *client, domain libvirt.Domain, kept record) (T, error) {
		now, err := c.activity(domain)
		if err == nil && !now.executes() {
			err = vm.ErrStopped
		}
		if err != nil {
			var none T
			return none, err
		}
		return work(c, domain, kept)
	})
}
