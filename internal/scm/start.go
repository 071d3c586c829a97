package scm

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/host"
)

// Start starts a service with extra arguments and waits until it runs. A service
// that runs already is left alone; one that is just stopping is started once it
// has stopped. A service that ends instead of running is host.ErrStartFailed. ctx bounds the wait.
func Start(ctx context.Context, h *host.Host, name string, args []string) (host.ServiceStatus, error) {
	asked := false
	var refused error
	status, err := watch(ctx, h, name, host.Running, func(status host.ServiceStatus) (bool, error) {
		switch status.State {
		case host.Running:
			return true, nil
		case host.Paused:
			return false, host.ErrStartFailed // a paused service refuses to be started, and would wait for ever
		case host.Stopped:
			if asked {
				return false, host.ErrStartFailed
			}
			asked = true
			refused = request(ctx, h, name, args)
			return false, refused
		default:
			return false, nil
		}
	})
	if refused != nil {
		return status, refused // it says what was attempted
	}
	if err != nil {
		return status, fmt.Errorf("start service %s: %w", name, err)
	}
	return status, nil
}

// request asks the SCM to start the service. Somebody else may have been faster.
func request(ctx context.Context, h *host.Host, name string, args []string) error {
	err := h.Services.Start(ctx, name, args...)
	if errors.Is(err, host.ErrServiceRunning) {
		return nil
	}
	return err
}
