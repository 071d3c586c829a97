package swap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// guardianArgument is the agent's argument that makes it a guardian.
const guardianArgument = "guardian"

const (
	guardianGone = 20 * time.Second      // for an older guardian to end
	pollInterval = 20 * time.Millisecond // of what only polling can tell
	maxResumes   = 3                     // guardians that may try to finish before one undoes
)

// startGuardian registers the guardian for a transaction and starts it.
func startGuardian(ctx context.Context, m Machine, id string) error {
	if err := removeGuardian(ctx, m.Host.Services); err != nil {
		return err
	}
	err := m.Host.Services.Create(ctx, host.ServiceConfig{
		Name:        layout.GuardianService,
		DisplayName: "swdt guardian",
		Description: "Finishes or undoes a binary swap that swdt began, then removes itself.",
		CommandLine: fmt.Sprintf(`"%s" %s %s`, m.Executable, guardianArgument, id),
		StartType:   host.StartAuto,
	})
	if err != nil {
		err = fmt.Errorf("register the guardian service: %w", err)
	} else if err = m.Host.Services.Start(ctx, layout.GuardianService); err != nil {
		err = fmt.Errorf("start the guardian service: %w", err)
	}
	if err != nil && atWork(ctx, m, id) {
		return nil // whatever Start says
	}
	if err != nil {
		return errors.Join(err, deleteGuardian(context.WithoutCancel(ctx), m.Host.Services))
	}
	return nil
}

// atWork is whether a guardian whose start is said to have failed runs all the
// same, or has run: then the transaction is its, and so is the journal.
func atWork(ctx context.Context, m Machine, id string) bool {
	status, err := m.Host.Services.Status(ctx, layout.GuardianService)
	if err == nil && status.State != host.Stopped {
		return true
	}
	records, _, err := readJournal(m.Host.Files, id)
	return err == nil && len(records) > 1
}

// removeGuardian waits for a guardian to end and takes its registration away
// where it could not do so itself. The caller has made sure that none is at work
// on an unfinished transaction.
func removeGuardian(ctx context.Context, services host.Services) error {
	ctx, cancel := context.WithTimeout(ctx, guardianGone)
	defer cancel()
	for {
		status, err := services.Status(ctx, layout.GuardianService)
		if errors.Is(err, host.ErrNoService) {
			return nil
		}
		if err == nil && status.State == host.Stopped {
			err = deleteGuardian(ctx, services)
		}
		if waitErr := pause(ctx); waitErr != nil {
			return fmt.Errorf("wait for the guardian service to end (it is %s): %w", status.State, errors.Join(waitErr, err))
		}
	}
}

func deleteGuardian(ctx context.Context, services host.Services) error {
	err := services.Delete(ctx, layout.GuardianService)
	if errors.Is(err, host.ErrNoService) || errors.Is(err, host.ErrServiceDeleting) {
		return nil
	}
	return err
}

// Guarded is whether a guardian is at work.
func Guarded(ctx context.Context, services host.Services) (bool, error) {
	status, err := services.Status(ctx, layout.GuardianService)
	if errors.Is(err, host.ErrNoService) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the guardian service: %w", err)
	}
	return status.State != host.Stopped, nil
}

// pause is one beat of polling.
func pause(ctx context.Context) error {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

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
	return retry(ctx, func() error { return deleteGuardian(ctx, m.Host.Services) })
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
		alive, err := Guarded(ctx, m.Host.Services)
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
