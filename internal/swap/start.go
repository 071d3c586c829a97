package swap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/scm"
)

// startServices starts what ran before, each after what it needs. Where others
// wait for it, a component must be healthy before they are started: a kubelet
// that does not find its runtime ends itself.
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

// startNew starts a service and makes sure that what then runs has been started
// from the new binary. A service whose process had to be ended is restarted by
// the SCM some seconds later, if it is registered so: that may have been between
// the stop and the swap.
func (t *transaction) startNew(ctx context.Context, service string) error {
	if err := t.start(ctx, service); err != nil {
		return err
	}
	swapped, _ := t.journal.at(Swapped, "")
	old, err := t.startedBefore(ctx, service, swapped)
	if err != nil || !old {
		return err
	}
	if err := t.stopUpTo(ctx, service); err != nil {
		return err
	}
	return t.start(ctx, service)
}

// stopUpTo stops a service and, before it, those that are started after it: the
// SCM starts what a service depends on along with it, so that it was one of them
// that brought the old process back.
func (t *transaction) stopUpTo(ctx context.Context, service string) error {
	for _, name := range t.journal.before().Running {
		if err := t.stop(ctx, name); err != nil || name == service {
			return err
		}
	}
	return nil
}

// startedBefore is whether the process of a service that this process started is
// older than a moment. One whose age is not known is not.
func (t *transaction) startedBefore(ctx context.Context, service string, moment time.Time) (bool, error) {
	processes, err := t.Host.Processes.List(ctx)
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
	ctx, cancel := context.WithTimeout(ctx, t.startTimeout(service))
	defer cancel()
	status, err := scm.Start(ctx, t.Host, service, nil)
	if err != nil {
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

func (t *transaction) startTimeout(service string) time.Duration {
	if c, ok := t.component(service); ok {
		return c.StartTimeout
	}
	return DefaultStartTimeout
}
