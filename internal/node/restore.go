package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// restorePauses returns the pauses between two attempts to reconnect; the last one repeats.
func restorePauses() []time.Duration {
	return []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second}
}

// restoring coordinates the callers that find the connection broken: one of them reconnects
// for all.
type restoring struct {
	mutex    sync.Mutex
	turn     chan struct{} // has an element while a caller reconnects
	made     int           // number of reconnections
	hopeless error         // why reconnecting is hopeless; only the caller that reconnects may use it
}

// begin waits until no other caller reconnects. The caller must then call end.
func (r *restoring) begin(ctx context.Context) error {
	r.mutex.Lock()
	if r.turn == nil {
		r.turn = make(chan struct{}, 1)
	}
	turn := r.turn
	r.mutex.Unlock()
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *restoring) end() { <-r.turn }

func (r *restoring) count(add int) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.made += add
	return r.made
}

// Reconnecting calls the function work. If work returns a *LostError, Reconnecting connects to the
// node again and repeats the call; it returns any other result of work. Reconnecting retries the
// connection until it succeeds, until the cause of the failure is hopeless, or until ctx ends: it
// is for work that continues until the user ends it. Several goroutines may call Reconnecting at
// the same time.
func (n *Node) Reconnecting(ctx context.Context, r ui.Reporter, work func(context.Context) error) error {
	for {
		before := n.restoring.count(0)
		err := work(ctx)
		var lost *LostError
		if !errors.As(err, &lost) || ctx.Err() != nil {
			return err
		}
		if err := n.restoreOnce(ctx, r, before, lost); err != nil {
			return err
		}
	}
}

// restoreOnce reconnects. before is the number of reconnections when the work began: if
// there are more by now, another caller has reconnected, and restoreOnce does nothing.
func (n *Node) restoreOnce(ctx context.Context, r ui.Reporter, before int, lost *LostError) error {
	if err := n.restoring.begin(ctx); err != nil {
		return err
	}
	defer n.restoring.end()
	if n.restoring.count(0) != before {
		return nil
	}
	if n.restoring.hopeless != nil { // another login might lock the account
		return n.restoring.hopeless
	}
	r.Warn("the connection is lost (%v); reconnecting", lost.Err)
	if err := n.restore(ctx, r); err != nil {
		if mustEnd(err) {
			n.restoring.hopeless = err
		}
		return err
	}
	n.restoring.count(1)
	r.Info("reconnected")
	return nil
}

// mustEnd reports whether a node that was reached before must not be tried again. Unlike at a first contact, a rejected
// key may be accepted later: it was accepted before, and a member of a domain rejects keys for a while after a boot.
func mustEnd(err error) bool {
	rejected, ok := errors.AsType[*ssh.AuthError](err)
	return IsHopeless(err) && !(ok && rejected.Passwords == 0)
}

func (n *Node) restore(ctx context.Context, r ui.Reporter) error {
	pauses := restorePauses()
	for {
		err := n.Reconnect(ctx)
		if err == nil || mustEnd(err) || ctx.Err() != nil {
			return err
		}
		r.Step("not reachable: %v; retrying in %s", err, pauses[0])
		if err := wait.For(ctx, pauses[0]); err != nil {
			return err
		}
		pauses = pauses[min(1, len(pauses)-1):]
	}
}
