package scm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
)

// DefaultStopTimeout is how long each service may take to stop where
// StopOptions says nothing.
const DefaultStopTimeout = 30 * time.Second

// killGrace is how long a killed process may take to disappear, and the SCM to
// notice.
const killGrace = 10 * time.Second

// stopRounds bounds how often dependents that were started meanwhile are
// stopped anew.
const stopRounds = 3

// StopOptions say how patient a stop is.
type StopOptions struct {
	// Timeout is for each service, until its process is gone; 0: DefaultStopTimeout.
	Timeout time.Duration
	// Kill ends the process of a service that did not stop in time. It never
	// kills a process that other services share.
	Kill bool
}

// Stop stops the services that depend on name, dependents before what they
// depend on, then name itself, each until its process is gone. It returns the
// names of those that it stopped, in that order, also beside an error. A service
// that is stopped already is no error and is not among them.
func Stop(ctx context.Context, h *host.Host, name string, options StopOptions) ([]string, error) {
	var stopped []string
	for round := 1; ; round++ {
		dependents, err := RunningDependents(ctx, h, name)
		if err != nil {
			return stopped, err
		}
		for _, dependent := range dependents {
			if err := stopInto(ctx, h, dependent, options, &stopped); err != nil {
				return stopped, fmt.Errorf("stop what depends on %s: %w", name, err)
			}
		}
		err = stopInto(ctx, h, name, options, &stopped)
		if errors.Is(err, host.ErrDependents) && round < stopRounds {
			continue // somebody started one meanwhile
		}
		return stopped, err
	}
}

func stopInto(ctx context.Context, h *host.Host, name string, options StopOptions, stopped *[]string) error {
	was, err := StopOne(ctx, h, name, options)
	if was {
		*stopped = append(*stopped, name)
	}
	return err
}

// StopOne stops one service and waits until its process is gone. It reports
// whether there was something to stop. Running dependents are
// host.ErrDependents.
func StopOne(ctx context.Context, h *host.Host, name string, options StopOptions) (stopped bool, err error) {
	timeout := options.Timeout
	if timeout <= 0 {
		timeout = DefaultStopTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	status, process, err := pin(bounded, h, name)
	if err != nil {
		return false, fmt.Errorf("stop service %s: %w", name, err)
	}
	defer process.Close()
	if status.State == host.Stopped {
		if err := process.Wait(bounded); err == nil {
			return false, nil
		}
	}
	err = askAndWait(bounded, h, name, process)
	if options.Kill && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = kill(ctx, h, name, process, err)
	}
	if err != nil {
		return false, fmt.Errorf("stop service %s: %w", name, err)
	}
	return status.State != host.Stopped, nil
}

// askAndWait sends the stop control as soon as the service takes it, and waits
// for its end and its process's.
func askAndWait(ctx context.Context, h *host.Host, name string, process host.ProcessHandle) error {
	asked := false
	last, err := watch(ctx, h, name, host.Stopped, func(status host.ServiceStatus) (bool, error) {
		switch status.State {
		case host.Stopped:
			return true, nil
		case host.Running, host.Paused:
			if asked {
				return false, nil // it is slow to say that it is stopping
			}
			took, err := ask(ctx, h, name)
			asked = took
			return false, err
		default:
			return false, nil // it refuses controls until it has settled
		}
	})
	if err != nil {
		return err
	}
	if err := process.Wait(ctx); err != nil {
		return fmt.Errorf("it is %s, but its process is still there: %w", last.State, err)
	}
	return nil
}

// ask sends the stop control. Services refuse it while they change state: no
// error then, and not taken.
func ask(ctx context.Context, h *host.Host, name string) (took bool, err error) {
	err = h.Services.Stop(ctx, name)
	if err == nil || errors.Is(err, host.ErrServiceStopped) {
		return true, nil
	}
	if errors.Is(err, host.ErrDependents) || ctx.Err() != nil {
		return false, err
	}
	status, again := h.Services.Status(ctx, name)
	if again == nil && status.State != host.Running && status.State != host.Paused {
		return false, nil
	}
	return false, err
}

// kill is the last resort: the process, then what the SCM thinks of it. The SCM
// may take the kill for a crash and start the service anew (its recovery): then
// that one is stopped in the ordinary way.
func kill(ctx context.Context, h *host.Host, name string, process host.ProcessHandle, cause error) error {
	bounded, cancel := context.WithTimeout(ctx, killGrace)
	defer cancel()
	before, err := h.Services.Status(bounded, name)
	if err != nil {
		return err
	}
	if err := process.Kill(); err != nil {
		return fmt.Errorf("%w; kill its process: %w", cause, err)
	}
	if err := process.Wait(bounded); err != nil {
		return fmt.Errorf("wait for its killed process: %w", err)
	}
	last, err := watch(bounded, h, name, host.Stopped, func(status host.ServiceStatus) (bool, error) {
		return status.State == host.Stopped || status.PID != 0 && status.PID != before.PID, nil
	})
	if err == nil && last.State != host.Stopped {
		_, err = StopOne(bounded, h, name, StopOptions{Timeout: killGrace})
	}
	return err
}

// RunningDependents names the services that depend on name, directly or through
// others, and are not stopped: in the order in which they can be stopped.
func RunningDependents(ctx context.Context, h *host.Host, name string) ([]string, error) {
	var order []string
	seen := map[string]bool{strings.ToLower(name): true}
	var visit func(string) error
	visit = func(service string) error {
		dependents, err := h.Services.Dependents(ctx, service)
		if err != nil {
			return fmt.Errorf("list what depends on service %s: %w", service, err)
		}
		for _, dependent := range dependents {
			key := strings.ToLower(dependent)
			if seen[key] { // a diamond, or a circle
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
	return notStopped(ctx, h, order)
}

// notStopped keeps the order. A stopped service may stand between two running
// ones (it crashed), so this is a filter and not a condition of the search.
func notStopped(ctx context.Context, h *host.Host, names []string) ([]string, error) {
	var running []string
	for _, name := range names {
		status, err := h.Services.Status(ctx, name)
		if errors.Is(err, host.ErrNoService) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("look at service %s: %w", name, err)
		}
		if status.State != host.Stopped {
			running = append(running, name)
		}
	}
	return running, nil
}
