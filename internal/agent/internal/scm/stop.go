package scm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// DefaultStopTimeout is how long each service may take to stop if StopOptions has no timeout.
const DefaultStopTimeout = 30 * time.Second

// killGrace limits the time in which a killed process must end and the SCM must report the service
// as stopped.
const killGrace = 10 * time.Second

// busyLimit is how long Start and StopOne ask again while the SCM delivers neither. The SCM delivers one control at a
// time, and waits up to 30 s for each: after two such waits, a stop is not delivered because of the service itself.
const busyLimit = time.Minute

// stopRounds limits how often Stop begins again because another process started a dependent during the stop.
const stopRounds = 3

// StopOptions limit a stop and choose what happens after the timeout.
type StopOptions struct {
	// Timeout limits the wait for the end of each service and its process, from the moment at which the SCM has
	// delivered the control; 0: DefaultStopTimeout.
	Timeout time.Duration
	// Kill ends the process of a service that did not stop in time. A process that other services
	// share is never killed.
	Kill bool
}

// Stop stops the services that depend on the named service, each after its own dependents, and then
// the named service itself. It waits until the process of each service has ended. Stop returns the
// names of the services that it stopped, in the order of the stops, even if it returns an error. If
// a service was stopped already, Stop neither fails nor returns its name.
func Stop(ctx context.Context, p *platform.Platform, name string, options StopOptions) ([]string, error) {
	var stopped []string
	for round := 1; ; round++ {
		dependents, err := RunningDependents(ctx, p, name)
		if err != nil {
			return stopped, err
		}
		for _, dependent := range dependents {
			if err := stopInto(ctx, p, dependent, options, &stopped); err != nil {
				return stopped, fmt.Errorf("stop the dependents of %s: %w", name, err)
			}
		}
		err = stopInto(ctx, p, name, options, &stopped)
		if errors.Is(err, fault.ErrDependents) && round < stopRounds {
			continue // another process has started a dependent
		}
		return stopped, err
	}
}

func stopInto(ctx context.Context, p *platform.Platform, name string, options StopOptions, stopped *[]string) error {
	was, err := StopOne(ctx, p, name, options)
	if was {
		*stopped = append(*stopped, name)
	}
	return err
}

// StopOne stops one service and waits until its process has ended. The result `stopped` is false if
// the service was stopped already. If dependents of the service run, the error is
// fault.ErrDependents.
func StopOne(ctx context.Context, p *platform.Platform, name string, options StopOptions) (stopped bool, err error) {
	timeout := options.Timeout
	if timeout <= 0 {
		timeout = DefaultStopTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	status, process, err := pin(bounded, p, name)
	if err != nil {
		return false, fmt.Errorf("stop service %s: %w", name, err)
	}
	defer process.Close()
	if status.State == platform.Stopped {
		if err := process.Wait(bounded); err == nil {
			return false, nil
		}
	}
	err = askAndWait(ctx, p, name, process, timeout)
	if options.Kill && ctx.Err() == nil &&
		(errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fault.ErrNotDelivered)) {
		err = kill(ctx, p, name, process, err)
	}
	if err != nil {
		return false, fmt.Errorf("stop service %s: %w", name, err)
	}
	return status.State != platform.Stopped, nil
}

// askAndWait sends the stop control as soon as the service accepts it, and waits until the service and its process
// have ended.
func askAndWait(ctx context.Context, p *platform.Platform, name string, process platform.ProcessHandle,
	timeout time.Duration) error {
	if err := deliver(ctx, p, name, timeout); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last, err := watch(bounded, p, name, platform.Stopped, func(status platform.ServiceStatus) (bool, error) {
		return status.State == platform.Stopped, nil
	})
	if err != nil {
		return err
	}
	if err := process.Wait(bounded); err != nil {
		return fmt.Errorf("it is %s, but its process still runs: %w", last.State, err)
	}
	return nil
}

// deliver sends the stop control as soon as the service accepts it. The call to the SCM is not bounded by the timeout:
// it can last 30 s because of another service.
func deliver(ctx context.Context, p *platform.Platform, name string, timeout time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	begun := time.Now()
	_, err := watch(bounded, p, name, platform.Stopped, func(status platform.ServiceStatus) (bool, error) {
		switch status.State {
		case platform.Stopped, platform.StopPending:
			return true, nil
		case platform.Running, platform.Paused:
			for {
				accepted, err := ask(ctx, p, name)
				if !errors.Is(err, fault.ErrNotDelivered) || time.Since(begun) >= busyLimit {
					return accepted, err
				}
			}
		default:
			return false, nil // the service refuses controls until its state has settled
		}
	})
	return err
}

// ask sends the stop control. A service refuses the control while it changes state; in this case,
// the result `accepted` is false and err is nil.
func ask(ctx context.Context, p *platform.Platform, name string) (accepted bool, err error) {
	err = p.Services.Stop(ctx, name)
	if err == nil || errors.Is(err, fault.ErrServiceStopped) {
		return true, nil
	}
	if errors.Is(err, fault.ErrDependents) || ctx.Err() != nil {
		return false, err
	}
	status, again := p.Services.Status(ctx, name)
	if again == nil && status.State != platform.Running && status.State != platform.Paused {
		return false, nil
	}
	return false, err
}

// kill ends the process and waits until the SCM reports the service as stopped. The SCM may treat
// the kill as a crash and start the service again (its recovery); in this case kill stops the new
// process in the ordinary way.
func kill(ctx context.Context, p *platform.Platform, name string, process platform.ProcessHandle, cause error) error {
	bounded, cancel := context.WithTimeout(ctx, killGrace)
	defer cancel()
	before, err := p.Services.Status(bounded, name)
	if err != nil {
		return err
	}
	if err := mayKill(bounded, p, name); err != nil {
		return fmt.Errorf("%w; %w", cause, err)
	}
	if err := process.Kill(); err != nil {
		return fmt.Errorf("%w; kill its process: %w", cause, err)
	}
	if err := process.Wait(bounded); err != nil {
		return fmt.Errorf("wait for its killed process: %w", err)
	}
	last, err := watch(bounded, p, name, platform.Stopped, func(status platform.ServiceStatus) (bool, error) {
		return status.State == platform.Stopped || status.PID != 0 && status.PID != before.PID, nil
	})
	if err == nil && last.State != platform.Stopped {
		_, err = StopOne(bounded, p, name, StopOptions{Timeout: killGrace})
	}
	return err
}

// errReboots is the reason for which a service is not killed.
var errReboots = errors.New("its process was not killed, since the service's recovery actions restart Windows after that")

// mayKill returns an error if a kill of a service's process restarts Windows: a kill counts as a failure of the service.
func mayKill(ctx context.Context, p *platform.Platform, name string) error {
	config, err := p.Services.Config(ctx, name)
	if err != nil {
		return err
	}
	if config.Recovery == nil || !config.Recovery.Reboots {
		return nil
	}
	others := commandline.Join("sc.exe", "failure", name, "reset=", "900", "actions=", "restart/10000")
	return fmt.Errorf("%w; on the node, set others first: `%s`", errReboots, others)
}

// RunningDependents returns the services that are not stopped and depend on the named service,
// directly or through others, in the order in which they can be stopped.
func RunningDependents(ctx context.Context, p *platform.Platform, name string) ([]string, error) {
	var order []string
	seen := map[string]bool{strings.ToLower(name): true}
	var visit func(string) error
	visit = func(service string) error {
		dependents, err := p.Services.Dependents(ctx, service)
		if err != nil {
			return fmt.Errorf("list the dependents of service %s: %w", service, err)
		}
		for _, dependent := range dependents {
			key := strings.ToLower(dependent)
			if seen[key] { // a second path to the service, or a circle
				continue
			}
			seen[key] = true
			if err := visit(dependent); err != nil {
				return err
			}
			order = append(order, dependent)
		}
		return nil
	}
	if err := visit(name); err != nil {
		return nil, err
	}
	return notStopped(ctx, p, order)
}

// notStopped returns those of the named services that are not stopped, in the same order as names.
// It filters the services only after the search for dependents, since the search must also follow
// stopped services: a crashed service may be between two running ones.
func notStopped(ctx context.Context, p *platform.Platform, names []string) ([]string, error) {
	var running []string
	for _, name := range names {
		status, err := p.Services.Status(ctx, name)
		if errors.Is(err, fault.ErrNoService) {
			continue // the service was deleted after it was listed
		}
		if err != nil {
			return nil, fmt.Errorf("query service %s: %w", name, err)
		}
		if status.State != platform.Stopped {
			running = append(running, name)
		}
	}
	return running, nil
}
