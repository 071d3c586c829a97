package deploy

import (
	"context"
	"errors"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// ownLock is how long the lock of our own broken session is waited for: the
	// node notices a pulled cable only when its pings stay unanswered.
	ownLock = time.Minute
	// farewell bounds what is still done after Ctrl-C, so that the prompt is
	// back within a second.
	farewell = 400 * time.Millisecond
)

// lock makes this the one that may change the node.
func (w *work) lock(ctx context.Context) error {
	if w.locked || w.options.Locked && !w.lost {
		return nil
	}
	if _, err := w.node.Machine.Lock(ctx, &agentv1.LockRequest{Holder: w.options.Holder}); err != nil {
		return plan.LockError(err)
	}
	w.locked = true
	return nil
}

// connectAgain makes a new session and takes the lock that the old one held.
func (w *work) connectAgain(ctx context.Context) error {
	if err := w.reconnect(ctx); err != nil {
		return err
	}
	if !w.locked && !w.options.Locked {
		return nil
	}
	w.locked, w.lost = false, true
	return w.lockAgain(ctx)
}

// lockAgain is lock after a broken connection, whose session may still be there.
func (w *work) lockAgain(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, ownLock)
	defer cancel()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := w.lock(ctx)
		var locked *host.LockedError
		if !errors.As(err, &locked) || string(locked.Holder) != w.options.Holder || wait.For(bounded, pause) != nil {
			return err
		}
	}
}

// unlock is a courtesy: the lock ends with the session anyway.
func (w *work) unlock(ctx context.Context) {
	if !w.locked || w.options.Locked {
		return
	}
	w.locked = false
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if _, err := w.node.Machine.Unlock(ctx, &agentv1.UnlockRequest{}); err != nil {
		w.reporter.Debug("unlock the node: %v", err)
	}
}
