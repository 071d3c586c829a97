package pktmon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	pollInterval = 100 * time.Millisecond // of what only polling can tell
	endLimit     = 60 * time.Second       // for a guardian to clear away
	maxWakes     = 3                      // guardians that may die before a session gives up
)

// Hold is a session's hold on its capture: the capture ends with it. What was captured
// stays the session's until Forget, or until its process ends.
type Hold struct {
	once sync.Once
	lock host.Unlocker
	err  error
	kept host.Unlocker // nil: nothing was captured yet
}

// Forget lets go of the packets: see Keep.
func (h *Hold) Forget() error {
	if h.kept == nil {
		return nil
	}
	return h.kept.Unlock()
}

// Release lets the capture end. Only the first call does anything.
func (h *Hold) Release() error {
	h.once.Do(func() { h.err = h.lock.Unlock() })
	return h.err
}

// Begin takes hold of the node's packet monitor, writes the journal and starts
// the guardian. What an earlier capture left behind is cleared away first.
func Begin(ctx context.Context, m Machine, plan Plan) (*Hold, error) {
	if err := plan.validate(); err != nil {
		return nil, err
	}
	files := m.Host.Files
	if err := files.MakeFolder(layout.Captures); err != nil {
		return nil, fmt.Errorf("create the captures' folder: %w", err)
	}
	hold, err := takeHold(ctx, m, plan.Holder)
	if err != nil {
		return nil, err
	}
	err = errors.Join(setAside(files), forget(files))
	if err == nil {
		hold.kept, err = Keep(files, plan.ID)
	}
	if err == nil {
		err = (&journal{Plan: plan, Event: Event{State: Prepared, Message: "by " + plan.Holder}}).write(files)
	}
	if err != nil {
		return nil, errors.Join(err, hold.Release(), hold.Forget())
	}
	// From here on the capture is the guardian's, also when the connection breaks.
	if err := startGuardian(context.WithoutCancel(ctx), m, plan.ID); err != nil {
		return nil, errors.Join(err, files.Remove(layout.CaptureJournal), hold.Release(), hold.Forget())
	}
	return hold, nil
}

// takeHold takes the lock when no capture is unfinished. It waits for a guardian
// that is ending one.
func takeHold(ctx context.Context, m Machine, holder string) (*Hold, error) {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	for {
		lock, err := m.Host.Files.Lock(layout.CaptureLock, []byte(holder))
		if isEnding(err) && pause(ctx) == nil {
			continue
		}
		if err != nil {
			return nil, busy(err)
		}
		hold := &Hold{lock: lock}
		j, err := readJournal(m.Host.Files)
		if err == nil && (j == nil || j.State == Done) {
			return hold, nil
		}
		// Its guardian needs the lock to clear away.
		if err := errors.Join(err, hold.Release()); err != nil {
			return nil, err
		}
		if err := wake(ctx, m, j.Plan.ID); err != nil {
			return nil, fmt.Errorf("clear away the capture %s, which was interrupted: %w", j.Plan.ID, err)
		}
		for j != nil && j.State != Done && err == nil {
			if err = pause(ctx); err == nil {
				j, err = readJournal(m.Host.Files)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("wait for the end of a capture that was interrupted: %w", err)
		}
	}
}

// isEnding is whether the lock is a guardian's, which lets go of it when all is
// cleared away: at the latest when its process ends, after its service has gone.
func isEnding(err error) bool {
	var locked *host.LockedError
	return errors.As(err, &locked) && string(locked.Holder) == endingHolder
}

func busy(err error) error {
	var locked *host.LockedError
	if !errors.As(err, &locked) {
		return fmt.Errorf("take hold of the packet monitor: %w", err)
	}
	if who := strings.TrimSpace(string(locked.Holder)); who != "" {
		return fmt.Errorf("%w: %s", ErrBusy, who)
	}
	return ErrBusy
}

// Follow reports a capture's steps until it is done. A guardian that has died
// before that is started again, to clear away. When ctx ends, the capture goes on
// for as long as it is held.
func Follow(ctx context.Context, m Machine, id string, report func(Event) error) error {
	wakes, closed := 0, 0
	for last := (State)(""); ; {
		// In this order: what the guardian wrote before it ended is then read.
		alive, err := theGuardian(m).AtWork(ctx)
		if err != nil {
			return err
		}
		j, err := journalOf(m.Host.Files, id)
		if err != nil {
			return err
		}
		if j.State != last || j.Closed != closed {
			last, closed = j.State, j.Closed
			if err := report(j.Event); err != nil || last == Done {
				return err
			}
		}
		if !alive {
			if wakes++; wakes > maxWakes {
				return fmt.Errorf("the capture's guardian ended %d times without an end of the capture, which is %s: look with `pktmon status`", wakes, last)
			}
			if err := startGuardian(ctx, m, id); err != nil {
				return err
			}
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("follow the capture, which is %s: %w", last, err)
		}
	}
}

// Heal starts the guardian of a capture that nobody holds and nobody guards: it
// was killed, with whoever held the capture. It does not wait.
func Heal(ctx context.Context, m Machine) error {
	j, err := readJournal(m.Host.Files)
	if err != nil || j == nil {
		return err
	}
	if j.State == Done {
		return theGuardian(m).RemoveEnded(ctx)
	}
	lock, err := m.Host.Files.Lock(layout.CaptureLock, nil)
	if err != nil {
		return nil // it is held: by its session, or by its guardian
	}
	if err := lock.Unlock(); err != nil {
		return err
	}
	return wake(ctx, m, j.Plan.ID)
}

// wake starts the guardian where none is at work.
func wake(ctx context.Context, m Machine, id string) error {
	alive, err := theGuardian(m).AtWork(ctx)
	if err != nil || alive {
		return err
	}
	return startGuardian(ctx, m, id)
}

// pause is one beat of polling.
func pause(ctx context.Context) error { return wait.For(ctx, pollInterval) }
