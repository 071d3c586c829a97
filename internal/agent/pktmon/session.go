package pktmon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/captureplan"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

const (
	pollInterval = 100 * time.Millisecond // interval at which conditions without a notification are checked
	endLimit     = 60 * time.Second       // limit of a guardian's clean-up, and of Begin's wait for the lock
	maxWakes     = 3                      // how often a session starts a guardian again
)

// Hold is a session's lock on its capture: when the lock is released, the capture ends. No other
// swdt removes the captured packets until Forget, or until the session's process ends.
type Hold struct {
	once sync.Once
	lock platform.Unlocker
	err  error
	kept platform.Unlocker // the lock on the packets, see Keep; nil until Begin has acquired it
}

// Forget releases the packets: see Keep.
func (h *Hold) Forget() error {
	if h.kept == nil {
		return nil
	}
	return h.kept.Unlock()
}

// Release releases the session's lock, which ends the capture. Later calls do nothing.
func (h *Hold) Release() error {
	h.once.Do(func() { h.err = h.lock.Unlock() })
	return h.err
}

// Begin locks the node's packet monitor, removes the files of earlier captures that no session
// fetches, writes the journal and starts the guardian.
func Begin(ctx context.Context, m Machine, plan captureplan.Plan) (*Hold, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	files := m.Platform.Files
	if err := files.MakeFolder(layout.Captures); err != nil {
		return nil, fmt.Errorf("create the captures' folder: %w", err)
	}
	hold, err := acquireHold(ctx, m, plan.Holder)
	if err != nil {
		return nil, err
	}
	err = errors.Join(setAside(files), forget(files))
	if err == nil {
		hold.kept, err = Keep(files, plan.ID)
	}
	if err == nil {
		err = (&journal{Plan: plan, Event: captureplan.Event{State: captureplan.Prepared, Message: "by " +
			plan.Holder}}).write(files)
	}
	if err != nil {
		return nil, errors.Join(err, hold.Release(), hold.Forget())
	}
	// From here on the guardian owns the capture, even if the connection breaks.
	if err := startGuardian(context.WithoutCancel(ctx), m, plan.ID); err != nil {
		return nil, errors.Join(err, files.Remove(layout.CaptureJournal), hold.Release(), hold.Forget())
	}
	return hold, nil
}

// acquireHold acquires the lock if no capture is unfinished. It waits while a guardian is ending a
// capture. If an interrupted capture has no guardian, acquireHold starts one and waits for it.
func acquireHold(ctx context.Context, m Machine, holder string) (*Hold, error) {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	for {
		lock, err := m.Platform.Files.Lock(layout.CaptureLock, []byte(holder))
		if isEnding(err) && pause(ctx) == nil {
			continue
		}
		if err != nil {
			return nil, busy(err)
		}
		hold := &Hold{lock: lock}
		j, err := readJournalIfWhole(m.Platform.Files)
		if err == nil && (j == nil || j.State == captureplan.Done) {
			return hold, nil
		}
		// The guardian of the unfinished capture needs the lock to clean up.
		if err := errors.Join(err, hold.Release()); err != nil {
			return nil, err
		}
		if err := ensureGuardian(ctx, m, j.Plan.ID); err != nil {
			return nil, fmt.Errorf("clean up after the interrupted capture %s: %w", j.Plan.ID, err)
		}
		if err := awaitDone(ctx, m); err != nil {
			return nil, err
		}
	}
}

// awaitDone waits until the journal's capture is done.
func awaitDone(ctx context.Context, m Machine) error {
	return wait.Condition{
		Name:     "the end of an interrupted capture",
		Interval: pollInterval,
		Look: func(context.Context) error {
			j, err := readJournal(m.Platform.Files)
			switch {
			case err != nil:
				return wait.Stop(fmt.Errorf("wait for the end of an interrupted capture: %w", err))
			case j != nil && j.State != captureplan.Done:
				return fmt.Errorf("capture %s is %s", j.Plan.ID, j.State)
			}
			return nil
		},
	}.Wait(ctx)
}

// isEnding reports whether err shows that a guardian holds the lock. The guardian releases the lock
// after the clean-up, at the latest when its process ends after the removal of its service.
func isEnding(err error) bool {
	var locked *fault.LockedError
	return errors.As(err, &locked) && string(locked.Holder) == endingHolder
}

func busy(err error) error {
	var locked *fault.LockedError
	if !errors.As(err, &locked) {
		return fmt.Errorf("lock the packet monitor: %w", err)
	}
	if holder := strings.TrimSpace(string(locked.Holder)); holder != "" {
		return fmt.Errorf("%w: %s", ErrBusy, holder)
	}
	return ErrBusy
}

// Follow reports a capture's steps until the capture is done. If the guardian ends before that, Follow starts it
// again to clean up. When ctx ends, the capture continues as long as its Hold is not released.
func Follow(ctx context.Context, m Machine, id string, report func(captureplan.Event) error) error {
	wakes, closed := 0, 0
	for last := (captureplan.State)(""); ; {
		// Call Running before the journal is read. If Running reports that the guardian has ended,
		// the journal has all records of the guardian.
		alive, err := guardianOf(m).Running(ctx)
		if err != nil {
			return err
		}
		j, err := journalOf(m.Platform.Files, id)
		if err != nil {
			return err
		}
		if j.State != last || j.Closed != closed {
			last, closed = j.State, j.Closed
			if err := report(j.Event); err != nil || last == captureplan.Done {
				return err
			}
		}
		if !alive {
			if wakes++; wakes > maxWakes {
				return fmt.Errorf("the capture's guardian ended %d times before the end of the capture, which is %s; "+
					"check with `pktmon status` whether the node still captures", wakes, last)
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

// Heal starts the guardian of an unfinished capture again if no session holds the capture and no guardian works on
// it, because both were killed. Heal does not wait for the guardian. If the journal is damaged, Heal returns an
// error, since the journal then names no capture that a guardian could end.
func Heal(ctx context.Context, m Machine) error {
	j, err := readJournal(m.Platform.Files)
	if err != nil || j == nil {
		return err
	}
	if j.State == captureplan.Done {
		return guardianOf(m).RemoveEnded(ctx)
	}
	lock, err := m.Platform.Files.Lock(layout.CaptureLock, nil)
	if held := new(fault.LockedError); errors.As(err, &held) {
		return nil // the capture's session or its guardian holds the lock
	}
	if err != nil {
		return fmt.Errorf("look whether a session holds the capture: %w", err)
	}
	if err := lock.Unlock(); err != nil {
		return err
	}
	return ensureGuardian(ctx, m, j.Plan.ID)
}

// ensureGuardian starts the guardian if none is working.
func ensureGuardian(ctx context.Context, m Machine, id string) error {
	alive, err := guardianOf(m).Running(ctx)
	if err != nil || alive {
		return err
	}
	return startGuardian(ctx, m, id)
}

// pause waits for one interval of polling.
func pause(ctx context.Context) error { return wait.For(ctx, pollInterval) }
