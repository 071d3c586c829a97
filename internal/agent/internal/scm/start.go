package scm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Start starts a service with extra arguments and waits until it runs. If the service runs already, Start does nothing.
// If the service is stopping, Start waits until it has stopped, and then starts it. If the service ends or is paused
// instead of running, the error is fault.ErrStartFailed. The timeout limits the wait for the service, from the moment on
// at which the SCM has started it: the call to the SCM can last 30 s because of another service.
func Start(ctx context.Context, p *platform.Platform, name string, args []string, timeout time.Duration) (
	platform.ServiceStatus, error) {
	status, refused, err := deliverStart(ctx, p, name, args, timeout)
	if refused != nil {
		return status, refused // the error names the attempted operation
	}
	if err == nil && status.State != platform.Running {
		bounded, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		status, err = watch(bounded, p, name, platform.Running, func(status platform.ServiceStatus) (bool, error) {
			if status.State == platform.Paused || status.State == platform.Stopped {
				return false, fault.ErrStartFailed // a paused service refuses to start, and the wait would never end
			}
			return status.State == platform.Running, nil
		})
	}
	if err != nil {
		return status, fmt.Errorf("start service %s: %w", name, err)
	}
	return status, nil
}

// deliverStart asks the SCM to start a service as soon as it is stopped, unless it runs already. The error refused is the
// SCM's; err is that of the wait.
func deliverStart(ctx context.Context, p *platform.Platform, name string, args []string, timeout time.Duration) (
	status platform.ServiceStatus, refused, err error) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	status, err = watch(bounded, p, name, platform.Running, func(status platform.ServiceStatus) (bool, error) {
		switch status.State {
		case platform.Running, platform.StartPending:
			return true, nil
		case platform.Paused:
			return false, fault.ErrStartFailed
		case platform.Stopped:
			if refused = Request(ctx, p.Services, name, args...); errors.Is(refused, fault.ErrServiceRunning) {
				refused = nil // another process has started the service already
			}
			return refused == nil, refused
		default:
			return false, nil
		}
	})
	return status, refused, err
}

// Request asks the SCM to start a service, and asks again while the SCM waits for another service. It returns when the
// service's process has connected to the SCM.
func Request(ctx context.Context, services platform.Services, name string, args ...string) error {
	begun := time.Now()
	for {
		err := services.Start(ctx, name, args...)
		if !errors.Is(err, fault.ErrNotDelivered) || time.Since(begun) >= busyLimit {
			return err
		}
	}
}
