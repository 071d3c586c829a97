package scm

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// pinRounds limits how often the function pin tries again because the service's process was
// replaced by a new one while pin opened it.
const pinRounds = 5

// pin opens a handle on a service's process while the service still owns the process. With the
// handle, the caller can wait for the end of the process even after the SCM no longer reports the
// process. If the service has no process of its own that can be opened, pin returns noProcess.
func pin(ctx context.Context, p *platform.Platform,
	name string) (platform.ServiceStatus, platform.ProcessHandle, error) {
	for round := 1; ; round++ {
		status, err := p.Services.Status(ctx, name)
		if err != nil {
			return status, nil, err
		}
		if status.PID == 0 && status.State == platform.StartPending && round < pinRounds {
			if err := launched(ctx, p, name); err != nil {
				return status, noProcess{}, err
			}
			continue
		}
		if status.PID == 0 || status.SharedProcess {
			return status, noProcess{}, nil
		}
		process, err := p.Processes.Open(status.PID)
		switch {
		case errors.Is(err, fault.ErrNotExist) && round < pinRounds:
			continue // the process ended between the two calls
		case errors.Is(err, fault.ErrNotExist), errors.Is(err, fault.ErrPermission):
			return status, noProcess{}, nil // for example a protected process: the SCM's status must suffice
		case err != nil:
			return status, nil, fmt.Errorf("open its process %d: %w", status.PID, err)
		}
		again, err := p.Services.Status(ctx, name)
		if err == nil && (again.PID == status.PID || round == pinRounds) {
			return again, process, nil
		}
		if err := errors.Join(err, process.Close()); err != nil {
			return status, nil, err
		}
	}
}

// launched waits while a service is starting and has no process yet: the SCM first starts the
// services on which this service depends, and waits before it restarts a crashed service.
func launched(ctx context.Context, p *platform.Platform, name string) error {
	_, err := watch(ctx, p, name, platform.Running, func(status platform.ServiceStatus) (bool, error) {
		return status.PID != 0 || status.State != platform.StartPending, nil
	})
	return err
}

// noProcess is the handle for a service that has no process of its own, or none that can be opened.
type noProcess struct{}

func (noProcess) Wait(context.Context) error { return nil }
func (noProcess) Kill() error                { return errShared }
func (noProcess) Close() error               { return nil }

var errShared = errors.New("it has no process of its own")
