package swap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/guard"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// GuardianArgument is the argument that runs the agent as a transaction's
// guardian.
const GuardianArgument = "guardian"

const (
	pollInterval = 20 * time.Millisecond // interval at which conditions without a notification are checked
	// Most steps of a small swap end within a few milliseconds, while a user waits for them: the journal is read more
	// often in its first second.
	firstPoll, firstPolls = 4 * time.Millisecond, 250
	maxResumes            = 3 // how many new guardians may try to finish; the next one undoes the swap
	// followLimit is how long Follow waits for a guardian that waits for a file.
	followLimit = 3 * time.Minute
)

// guardianOf returns the service that owns this machine's transaction.
func guardianOf(m Machine) guard.Guardian {
	return guard.Guardian{
		Services:    m.Platform.Services,
		Service:     layout.GuardianService,
		DisplayName: "swdt guardian",
		Description: "Finishes or undoes a binary swap that swdt began, then removes itself.",
		Guards:      "the transaction",
		Executable:  m.Executable,
		Argument:    GuardianArgument,
		Recovery: &platform.Recovery{
			Restarts:   []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 5 * time.Minute},
			RepeatLast: true, OnErrorExit: true, Reset: time.Hour,
		},
		Poll: pollInterval,
	}
}

// startGuardian starts the guardian of a transaction. A journal with a record after the plan shows
// that the guardian has run before.
func startGuardian(ctx context.Context, m Machine, id string) error {
	return guardianOf(m).Start(ctx, id, func() bool {
		records, _, err := readJournal(m.Platform.Files, id)
		return err == nil && len(records) > 1
	})
}

// Guarded reports whether a guardian is working.
func Guarded(ctx context.Context, p *platform.Platform) (bool, error) {
	return guardianOf(Machine{Platform: p}).Running(ctx)
}

// pause waits for one interval of polling; polls is the number of earlier ones.
func pause(ctx context.Context, polls int) error {
	if polls < firstPolls {
		return wait.For(ctx, firstPoll)
	}
	return wait.For(ctx, pollInterval)
}

// Guard finishes a transaction and removes the guardian service. The agent calls Guard when the
// agent is started as the guardian: after Begin, and again after every crash or boot, until the
// journal has the state done.
func Guard(ctx context.Context, m Machine, id string) error {
	if !validID(id) {
		return fmt.Errorf("%w: %q", ErrNoTransaction, id)
	}
	err := finishTransaction(ctx, m, id)
	if err != nil && !errors.Is(err, ErrNoTransaction) {
		return err // the service stays registered; the guardian starts again at the next boot or contact
	}
	return guardianOf(m).Remove(ctx)
}

func finishTransaction(ctx context.Context, m Machine, id string) error {
	j, err := openJournal(m.Platform.Files, id)
	if err != nil {
		return err
	}
	defer j.file.Close()
	if j.outcome() != nil {
		return nil
	}
	if j.plan() == nil { // a crash interrupted the write of the plan: nothing was changed
		return m.Platform.Files.Remove(journalPath(id))
	}
	m.Hashes = m.hashes()
	t := &transaction{
		Machine: m, journal: j, plan: *j.plan(),
		started: map[string]startedService{}, healthy: map[string]time.Time{},
	}
	return t.run(ctx)
}

// isStuck reports whether an undo has waited for followLimit for the same file.
func isStuck(records []record) bool {
	last := records[len(records)-1]
	undoing := (&journal{records: records}).reached(RollingBack)
	return undoing && last.State == Waiting && time.Since(last.Time) > followLimit
}

// Follow reports a transaction's events until the transaction is done. If the guardian ends before
// that, Follow starts the guardian again. When ctx ends, the transaction continues.
func Follow(ctx context.Context, m Machine, id string, report func(Event)) (Outcome, error) {
	seen, wakes := 0, 0
	for polls := 0; ; polls++ {
		// Call Running before the journal is read. If Running reports that the guardian has ended,
		// the journal has all records of the guardian.
		alive, err := guardianOf(m).Running(ctx)
		down := errors.Is(err, fault.ErrShuttingDown) // the SCM answers nothing else any more
		if err != nil && !down {
			return Outcome{}, err
		}
		records, _, err := readJournal(m.Platform.Files, id)
		if err != nil {
			return Outcome{}, err
		}
		for ; seen < len(records); seen++ {
			r := records[seen]
			report(Event{Time: r.Time, State: r.State, Component: r.Component, Message: r.Message})
			if r.Outcome != nil {
				if m.Hashes != nil {
					m.Hashes.Refresh() // with the versions that the guardian has learned
				}
				return *r.Outcome, nil
			}
		}
		if alive && len(records) > 0 && isStuck(records) {
			last := records[len(records)-1]
			return Outcome{}, &StuckError{ID: id, Guarded: true,
				Last: Event{Time: last.Time, State: last.State, Message: last.Message}}
		}
		if !alive && !down && !shutsDown(ctx, m) { // the SCM starts the next guardian at the boot
			if len(records) == 0 {
				return Outcome{}, fmt.Errorf("%w: %s was interrupted before it began", ErrNoTransaction, id)
			}
			last := records[len(records)-1]
			if wakes == maxResumes || wakes > 0 && last.State == GaveUp {
				return Outcome{}, &StuckError{ID: id, Last: Event{Time: last.Time, State: last.State,
					Message: last.Message}}
			}
			wakes++
			if err := startGuardian(ctx, m, id); err != nil && !errors.Is(err, fault.ErrShuttingDown) {
				return Outcome{}, err
			}
		}
		if err := pause(ctx, polls); err != nil {
			return Outcome{}, fmt.Errorf("follow the transaction: %w", err)
		}
	}
}
