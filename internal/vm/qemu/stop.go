package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/qemu/process"
	"github.com/swdt-dev/swdt/internal/vm/qemu/qmp"
)

const (
	// askInterval is the pause between two requests to shut down. A guest that is still starting
	// misses the first requests.
	askInterval = 3 * time.Second
	// writeLimit bounds the time in which the QEMU of a VM that has shut down writes the disk.
	writeLimit = time.Minute
	// quitLimit bounds the wait after each way to end a process.
	quitLimit = 5 * time.Second
)

// Stop asks the guest to shut down and waits until the VM has ended.
func (d *Driver) Stop(ctx context.Context, m vm.Machine) error {
	now, err := d.find(m)
	if err != nil {
		return err
	}
	if now.qemu != nil {
		if err := d.shutDown(ctx, m, now); err != nil {
			return err
		}
	}
	if now.state == vm.Absent {
		return nil
	}
	return d.clean(context.WithoutCancel(ctx), m, now.started)
}

// shutDown asks the guest to shut down, and repeats the request until the VM has shut down.
func (d *Driver) shutDown(ctx context.Context, m vm.Machine, now found) error {
	// A QEMU whose start was interrupted may not answer yet.
	client, err := answered(ctx, sockets{now.started.Sockets}, func() bool { return !now.qemu.Alive() })
	switch {
	case err == nil:
		defer client.Close()
	case !now.qemu.Alive():
		return now.qemu.Ended(context.WithoutCancel(ctx), quitLimit)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", vm.ErrIgnored, err)
	default:
		return err
	}
	if state, err := runState(ctx, client); err == nil && pauses(state) != "" {
		return fmt.Errorf("%w: it is paused: %s", vm.ErrIgnored, pauses(state))
	}
	for {
		if err := d.ask(ctx, now, client); err != nil && ctx.Err() == nil && now.qemu.Alive() {
			return err
		}
		bounded, cancel := context.WithTimeout(ctx, askInterval)
		err := client.Await(bounded, "SHUTDOWN")
		cancel()
		switch {
		case err == nil || errors.Is(err, qmp.ErrClosed):
			return d.ended(ctx, now)
		case ctx.Err() != nil:
			return fmt.Errorf("%w: it was asked until %w; end it at once with --force", vm.ErrIgnored, context.Cause(ctx))
		}
	}
}

// ask asks the guest to shut down: through its agent if there is one, or else by the power button.
func (d *Driver) ask(ctx context.Context, now found, client *qmp.Client) error {
	agent, err := openAgent(ctx, now, client)
	if err == nil {
		defer agent.Close()
		if agent.Shutdown(ctx) == nil {
			return nil
		}
	}
	err = client.Run(ctx, "system_powerdown", nil, nil)
	if errors.Is(err, qmp.ErrClosed) || ctx.Err() != nil {
		return nil // shutDown notices both
	}
	return err
}

// openAgent connects to the guest agent. The error is qmp.ErrSilent if no program in the
// guest has opened the agent's port.
func openAgent(ctx context.Context, now found, client *qmp.Client) (*qmp.Agent, error) {
	var ports []struct {
		Label string `json:"label"`
		Open  bool   `json:"frontend-open"`
	}
	if err := client.Run(ctx, "query-chardev", nil, &ports); err != nil {
		return nil, err
	}
	for _, port := range ports {
		if port.Label == "agent" && port.Open {
			return qmp.DialAgent(ctx, sockets{now.started.Sockets}.agent())
		}
	}
	return nil, qmp.ErrSilent
}

// ended waits for the end of the QEMU of a VM that has shut down, and ends that QEMU after
// writeLimit.
func (d *Driver) ended(ctx context.Context, now found) error {
	after := context.WithoutCancel(ctx)
	if now.qemu.Ended(after, writeLimit) == nil {
		return nil
	}
	return end(after, now.qemu, sockets{now.started.Sockets})
}

// Kill ends the VM at once.
func (d *Driver) Kill(ctx context.Context, m vm.Machine) error {
	now, err := d.find(m)
	if err != nil {
		return err
	}
	if now.state == vm.Absent {
		return nil
	}
	if now.qemu != nil {
		if err := end(ctx, now.qemu, sockets{now.started.Sockets}); err != nil {
			return err
		}
	}
	if err := d.clean(ctx, m, now.started); err != nil {
		return err
	}
	return nil
}

// end ends a QEMU: by its command quit, which leaves the disk in order, then by SIGTERM, then by
// SIGKILL.
func end(ctx context.Context, qemu *process.Process, s sockets) error {
	if quit(ctx, s) == nil && qemu.Ended(ctx, quitLimit) == nil {
		return nil
	}
	var err error
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Kill} {
		if err := qemu.Signal(signal); err != nil {
			return err
		}
		if err = qemu.Ended(ctx, quitLimit); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// quit sends QEMU the command quit.
func quit(ctx context.Context, s sockets) error {
	bounded, cancel := context.WithTimeout(ctx, quitLimit)
	defer cancel()
	client, err := qmp.Dial(bounded, s.control())
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Run(bounded, "quit", nil, nil); err != nil && !errors.Is(err, qmp.ErrClosed) {
		return err
	}
	return nil
}

// Restart resets the VM, and continues it if it is paused, for example because its guest has
// panicked.
func (d *Driver) Restart(ctx context.Context, m vm.Machine) error {
	now, err := d.running("restart", m)
	if err != nil {
		return err
	}
	client, err := qmp.Dial(ctx, sockets{now.started.Sockets}.control())
	if err != nil {
		return err
	}
	defer client.Close()
	for _, command := range []string{"system_reset", "cont"} {
		if err := client.Run(ctx, command, nil, nil); err != nil {
			return err
		}
	}
	return nil
}
