package scm

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/host"
)

// pinRounds bounds how often a service that changes its process under our eyes
// is looked at again.
const pinRounds = 5

// pin takes a handle on a service's process while the service is still its
// owner, so that its end can be awaited after the SCM has forgotten it.
func pin(ctx context.Context, h *host.Host, name string) (host.ServiceStatus, host.ProcessHandle, error) {
	for round := 1; ; round++ {
		status, err := h.Services.Status(ctx, name)
		if err != nil {
			return status, nil, err
		}
		if status.PID == 0 && status.State == host.StartPending && round < pinRounds {
			if err := launched(ctx, h, name); err != nil {
				return status, noProcess{}, err
			}
			continue
		}
		if status.PID == 0 || status.SharedProcess {
			return status, noProcess{}, nil
		}
		process, err := h.Processes.Open(status.PID)
		switch {
		case errors.Is(err, host.ErrNotExist) && round < pinRounds:
			continue // it ended between the two calls
		case errors.Is(err, host.ErrNotExist), errors.Is(err, host.ErrPermission):
			return status, noProcess{}, nil // a protected process: the SCM's word must do
		case err != nil:
			return status, nil, fmt.Errorf("open its process %d: %w", status.PID, err)
		}
		again, err := h.Services.Status(ctx, name)
		if err == nil && (again.PID == status.PID || round == pinRounds) {
			return again, process, nil
		}
		if err := errors.Join(err, process.Close()); err != nil {
			return status, nil, err
		}
	}
}

// launched waits while a service is starting and has no process yet: the SCM sees
// to what it depends on first, and restarts what has crashed in its own time.
func launched(ctx context.Context, h *host.Host, name string) error {
	_, err := watch(ctx, h, name, host.Running, func(status host.ServiceStatus) (bool, error) {
		return status.PID != 0 || status.State != host.StartPending, nil
	})
	return err
}

// noProcess stands for the process of a service that has none of its own.
type noProcess struct{}

func (noProcess) Wait(context.Context) error { return nil }
func (noProcess) Kill() error                { return errShared }
func (noProcess) Close() error               { return nil }

var errShared = errors.New("it has no process of its own")
