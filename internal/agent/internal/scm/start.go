package scm

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Start starts a service with extra arguments and waits until it runs. If the service runs already,
// Start does nothing. If the service is stopping, Start waits until it has stopped, and then starts
// it. If the service ends or is paused instead of running, the error is fault.ErrStartFailed. ctx
// limits the wait.
func Start(ctx context.Context, p *platform.Platform, name string, args []string) (platform.ServiceStatus, error) {
	asked := false
	var refused error
	status, err := watch(ctx, p, name, platform.Running, func(status platform.ServiceStatus) (bool, error) {
		switch status.State {
		case platform.Running:
			return true, nil
		case platform.Paused:
			return false, fault.ErrStartFailed // a paused service refuses to start, and the wait would never end
		case platform.Stopped:
			if asked {
				return false, fault.ErrStartFailed
			}
			asked = true
			refused = request(ctx, p, name, args)
			return false, refused
		default:
			return false, nil
		}
	})
	if refused != nil {
		return status, refused // the error names the attempted operation
	}
	if err != nil {
		return status, fmt.Errorf("start service %s: %w", name, err)
	}
	return status, nil
}

// request asks the SCM to start the service. It returns nil if another process has started the
// service already.
func request(ctx context.Context, p *platform.Platform, name string, args []string) error {
	err := p.Services.Start(ctx, name, args...)
	if errors.Is(err, fault.ErrServiceRunning) {
		return nil
	}
	return err
}
