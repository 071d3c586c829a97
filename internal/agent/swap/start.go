package swap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/scm"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// startServices starts the services that ran before the transaction, each after the services that
// it needs. A component must be healthy before startServices starts the services after it: a
// kubelet that does not find its runtime ends itself.
func (t *transaction) startServices(ctx context.Context) error {
	order := t.startOrder()
	for i, name := range order {
		if err := t.note(Starting, name, ""); err != nil {
			return err
		}
		component := t.componentOf(name)
		if err := t.startNew(ctx, name); err != nil {
			return &failure{component, err, t.logLines(ctx, name)}
		}
		if c, ok := t.component(name); ok && i+1 < len(order) {
			if err := t.awaitHealthy(ctx, c); err != nil {
				return &failure{component, err, t.logLines(ctx, name)}
			}
		}
	}
	return nil
}

// startNew starts a service and makes sure that its process runs the new binary. The process may
// run the old binary: if the stop had to kill the old process, a recovery action of the SCM may
// have restarted the service some seconds later, between the stop and the swap.
func (t *transaction) startNew(ctx context.Context, service string) error {
	swapped, _ := t.journal.at(Swapped, "")
	return t.startSince(ctx, service, swapped)
}

// startSince starts a service. If its process has started before a moment, startSince ends that process and starts
// another; the zero time: any process will do.
func (t *transaction) startSince(ctx context.Context, service string, moment time.Time) error {
	if err := t.start(ctx, service); err != nil {
		return err
	}
	old, err := t.startedBefore(ctx, service, moment)
	if err != nil || !old {
		return err
	}
	if err := t.stopUpTo(ctx, service); err != nil {
		return err
	}
	return t.start(ctx, service)
}

// stopUpTo stops the running services in their stop order, up to and including this service. The
// services before it in that order may depend on it, so they must stop first. They may run again:
// the SCM may have restarted one of them and, with it, the old process of this service.
func (t *transaction) stopUpTo(ctx context.Context, service string) error {
	for _, name := range t.journal.before().Running {
		if err := t.stop(ctx, name); err != nil || name == service {
			return err
		}
	}
	return nil
}

// startedBefore reports whether the service's process started before the given moment. Call it only
// after t.start has started the service. If the start time is unknown, startedBefore returns false.
func (t *transaction) startedBefore(ctx context.Context, service string, moment time.Time) (bool, error) {
	processes, err := t.Platform.Processes.List(ctx)
	if err != nil {
		return false, fmt.Errorf("list the processes: %w", err)
	}
	running, _ := t.startedAt(service)
	for _, p := range processes {
		if p.PID == running.pid && p.PID != 0 {
			return !p.Started.IsZero() && p.Started.Before(moment), nil
		}
	}
	return false, nil
}

func (t *transaction) startOrder() []string {
	b := t.journal.before()
	if b == nil {
		return nil
	}
	order := slices.Clone(b.Running)
	slices.Reverse(order)
	return order
}

func (t *transaction) start(ctx context.Context, service string) error {
	status, err := scm.Start(ctx, t.Platform, service, nil, t.startTimeout(service))
	if err != nil {
		if c, ok := t.component(service); ok {
			return withRemedy(err, c.Destination)
		}
		return err
	}
	t.started[strings.ToLower(service)] = startedService{pid: status.PID, at: time.Now()}
	return nil
}

// checkServices waits until every service that was started has settled and is
// healthy.
func (t *transaction) checkServices(ctx context.Context) error {
	for _, name := range t.startOrder() {
		if err := t.note(Checking, name, ""); err != nil {
			return err
		}
		c, ok := t.component(name)
		if !ok { // a dependent that is not in the plan
			c = Component{Name: name, Service: name, Settle: DefaultSettle}
		}
		if err := t.check(ctx, c); err != nil {
			return &failure{t.componentOf(name), err, t.logLines(ctx, name)}
		}
	}
	return nil
}

// withRemedy adds the remedy to err if a policy or an antivirus blocks the program.
func withRemedy(err error, program string) error {
	if errors.Is(err, fault.ErrBlocked) {
		return fmt.Errorf("%w; %s", err, fault.BlockedRemedy(program))
	}
	return err
}

func (t *transaction) startTimeout(service string) time.Duration {
	if c, ok := t.component(service); ok {
		return c.StartTimeout
	}
	return DefaultStartTimeout
}
