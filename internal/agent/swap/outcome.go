package swap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/wait"
)

// finish writes the outcome, which ends the transaction.
func (t *transaction) finish(ctx context.Context, outcome Outcome) error {
	return wait.Retry(ctx, func() error {
		return t.journal.append(record{State: Done, Message: string(outcome.Result), Outcome: &outcome})
	})
}

func (t *transaction) committedOutcome(ctx context.Context, notes, asked map[string]string) Outcome {
	o := Outcome{Result: Committed, Down: t.down()}
	for _, c := range t.plan.Components {
		action := ActionReplaced
		switch {
		case !c.swaps():
			action = ActionRestarted
		case c.creates():
			action = ActionCreated
		}
		if message := t.unhealthyBefore(c); message != "" && notes[c.Name] == "" {
			notes[c.Name] = message
		}
		described := t.describe(ctx, c, action, t.withWaits(c, notes[c.Name], nil))
		described.Version = asked[c.Name]
		o.Components = append(o.Components, described)
	}
	return o
}

func (t *transaction) rolledBackOutcome(ctx context.Context, why *failure, down []string) Outcome {
	o := Outcome{Result: RolledBack, Message: why.err.Error(), FailedComponent: why.component, Down: t.down()}
	if len(down) > 0 {
		o.Result = Failed
		o.Message = fmt.Sprint(o.Message, "; ", errors.Join(asErrors(down)...))
	}
	for _, c := range t.plan.Components {
		action, message := ActionRolledBack, t.withWaits(c, "", nil)
		if c.Name == why.component {
			action, message = ActionFailed, t.withWaits(c, why.err.Error(), why.err)
		}
		described := t.describe(ctx, c, action, message)
		if c.Name == why.component {
			described.LogLines = why.logLines
		}
		o.Components = append(o.Components, described)
	}
	return o
}

func asErrors(texts []string) (errs []error) {
	for _, text := range texts {
		errs = append(errs, errors.New(text))
	}
	return errs
}

func (t *transaction) describe(ctx context.Context, c Component, action Action, message string) ComponentOutcome {
	o := ComponentOutcome{Name: c.Name, Action: action, Message: message}
	if c.Service == "" {
		return o
	}
	if status, err := t.Platform.Services.Status(ctx, c.Service); err == nil {
		o.Service = &status
	}
	stopped, wasStopped := t.journal.at(Stopping, c.Service)
	started, wasStarted := t.startedAt(c.Service)
	if wasStopped && wasStarted {
		o.Down = started.at.Sub(stopped)
		if healthy, ok := t.healthy[c.Name]; ok {
			o.Healthy = healthy.Sub(started.at)
		}
	}
	return o
}

// down returns the time from the first stop in the journal to the last start by this process. It
// returns 0 if this process has started no service.
func (t *transaction) down() time.Duration {
	first, ok := t.journal.at(Stopping, "")
	if !ok || len(t.started) == 0 {
		return 0
	}
	var last time.Time
	for _, s := range t.started {
		if s.at.After(last) {
			last = s.at
		}
	}
	return last.Sub(first)
}
