package swap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/guard"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/wait"
)

// GuardianArgument is the agent's argument that makes it a transaction's guardian.
const GuardianArgument = "guardian"

const (
	pollInterval = 20 * time.Millisecond // of what only polling can tell
	maxResumes   = 3                     // guardians that may try to finish before one undoes
)

// theGuardian is the service that owns this machine's transaction.
func theGuardian(m Machine) guard.Guardian {
	return guard.Guardian{
		Services:    m.Host.Services,
		Service:     layout.GuardianService,
		DisplayName: "swdt guardian",
		Description: "Finishes or undoes a binary swap that swdt began, then removes itself.",
		Guards:      "the transaction",
		Executable:  m.Executable,
		Argument:    GuardianArgument,
		Poll:        pollInterval,
	}
}

// startGuardian starts the guardian of a transaction, which has run once it has
// written a record of its own behind the plan.
func startGuardian(ctx context.Context, m Machine, id string) error {
	return theGuardian(m).Start(ctx, id, func() bool {
		records, _, err := readJournal(m.Host.Files, id)
		return err == nil && len(records) > 1
	})
}

// Guarded is whether a guardian is at work.
func Guarded(ctx context.Context, h *host.Host) (bool, error) {
	return theGuardian(Machine{Host: h}).AtWork(ctx)
}

// pause is one beat of polling.
func pause(ctx context.Context) error { return wait.For(ctx, pollInterval) }

// Guard brings a transaction to its end and removes the guardian service. It is
// what the agent does when it is started as the guardian, after Begin and again
// after every crash or boot, until the journal says done.
func Guard(ctx context.Context, m Machine, id string) error {
	if !validID(id) {
		return fmt.Errorf("%w: %q", ErrNoTransaction, id)
	}
	err := bringToEnd(ctx, m, id)
	if err != nil && !errors.Is(err, ErrNoTransaction) {
		return err // stay registered: the next boot, or contact, tries again
	}
	return theGuardian(m).Remove(ctx)
}

func bringToEnd(ctx context.Context, m Machine, id string) error {
	j, err := openJournal(m.Host.Files, id)
	if err != nil {
		return err
	}
	defer j.file.Close()
	if j.outcome() != nil {
		return nil
	}
	if j.plan() == nil { // torn while it was written: nothing was touched
		return m.Host.Files.Remove(journalPath(id))
	}
	t := &transaction{
		Machine: m, journal: j, plan: *j.plan(),
		started: map[string]startedService{}, healthy: map[string]time.Time{},
	}
	return t.run(ctx)
}

// Follow reports a transaction's events until it is done. A guardian that has
// died before that is started again. When ctx ends the transaction goes on.
func Follow(ctx context.Context, m Machine, id string, report func(Event)) (Outcome, error) {
	seen, wakes := 0, 0
	for {
		// In this order: what the guardian wrote before it ended is then read.
		alive, err := theGuardian(m).AtWork(ctx)
		if err != nil {
			return Outcome{}, err
		}
		records, _, err := readJournal(m.Host.Files, id)
		if err != nil {
			return Outcome{}, err
		}
		for ; seen < len(records); seen++ {
			r := records[seen]
			report(Event{Time: r.Time, State: r.State, Component: r.Component, Message: r.Message})
			if r.Outcome != nil {
				return *r.Outcome, nil
			}
		}
		if !alive {
			if len(records) == 0 {
				return Outcome{}, fmt.Errorf("%w: %s was interrupted before it began", ErrNoTransaction, id)
			}
			last := records[len(records)-1]
			if wakes == maxResumes || wakes > 0 && last.State == GaveUp {
				return Outcome{}, &StuckError{ID: id, Last: Event{Time: last.Time, State: last.State, Message: last.Message}}
			}
			wakes++
			if err := startGuardian(ctx, m, id); err != nil {
				return Outcome{}, err
			}
		}
		if err := pause(ctx); err != nil {
			return Outcome{}, fmt.Errorf("follow the transaction: %w", err)
		}
	}
}
