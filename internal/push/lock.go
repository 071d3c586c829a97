package push

import (
	"context"
	"errors"
	"time"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	// ownLock bounds the wait for a lock that a broken session of this swdt still
	// holds: the node notices a lost connection only when its pings stay unanswered.
	ownLock = time.Minute
	// returnLimit bounds the attempts to reach a node again before anything was changed on it.
	returnLimit = time.Minute
	// farewell bounds the work after Ctrl-C, so that the prompt returns within a
	// second.
	farewell = 400 * time.Millisecond
)

// lock takes the node's lock. Only the holder of the lock may change the node.
func (w *work) lock(ctx context.Context) error {
	if w.locked || w.options.Locked && !w.lost {
		return nil
	}
	if err := w.node.Lock(ctx, w.options.Holder); err != nil {
		return plan.LockError(err)
	}
	w.locked = true
	return nil
}

// connectAgain makes a new session, and takes the lock again if the old session held it.
func (w *work) connectAgain(ctx context.Context) error {
	if err := w.reach(ctx); err != nil {
		return err
	}
	if !w.locked && !w.options.Locked {
		return nil
	}
	w.locked, w.lost = false, true
	return w.lockAgain(ctx)
}

// reach makes a new session. The node, or the API server that leads to it, may take a while to come back.
func (w *work) reach(ctx context.Context) error {
	var last error
	err := wait.Condition{Name: "the node to come back", Interval: time.Second, MaxInterval: 5 * time.Second,
		Limit: returnLimit,
		// Look ignores its own context, so that the limit does not interrupt an attempt.
		Look: func(context.Context) error {
			last = w.reconnect(ctx)
			if last == nil {
				return nil
			}
			return wait.StopIf(node.IsHopeless(last) || ctx.Err() != nil, last)
		},
		Pending: func(state error) { w.reporter.Debug("connect again: %v", state) },
	}.Wait(ctx)
	if err != nil && ctx.Err() == nil {
		return last
	}
	return err
}

// lockAgain takes the lock after the connection broke. The session of the old connection may
// still exist and hold the lock.
func (w *work) lockAgain(ctx context.Context) error {
	return wait.Condition{
		Name:        "the node to release the lock of the session that broke",
		Interval:    20 * time.Millisecond,
		MaxInterval: time.Second,
		Limit:       ownLock,
		// Look ignores its own context, so that the limit does not interrupt a call.
		Look: func(context.Context) error {
			err := w.lock(ctx)
			if err == nil {
				return nil
			}
			var locked *fault.LockedError
			return wait.StopIf(!errors.As(err, &locked) || string(locked.Holder) != w.options.Holder, err)
		},
	}.Wait(ctx)
}

// unlock releases the lock at once. The end of the session would also release the lock, but later.
func (w *work) unlock(ctx context.Context) {
	if !w.locked || w.options.Locked {
		return
	}
	w.locked = false
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := w.node.Unlock(ctx); err != nil {
		w.reporter.Debug("unlock the node: %v", err)
	}
}
