package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// restorePauses are between two attempts to connect again; the last one goes on.
func restorePauses() []time.Duration {
	return []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second}
}

// restoring is how the connection is made again: of many who find it broken, by
// one.
type restoring struct {
	mutex sync.Mutex
	turn  chan struct{} // held by who connects
	made  int           // connections made again
	vain  error         // why it is hopeless; whoever has the turn may look
}

// begin waits for the turn.
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

// Again does work, and when that loses the connection connects again and does it
// anew, until it ends in another way. It connects for as long as it takes, unless
// that is hopeless or ctx ends: for what goes on until somebody ends it. Several
// may be at it at the same time.
func (n *Node) Again(ctx context.Context, tell ui.Reporter, work func(context.Context) error) error {
	for {
		before := n.again.count(0)
		err := work(ctx)
		var lost *LostError
		if !errors.As(err, &lost) || ctx.Err() != nil {
			return err
		}
		if err := n.restoreOnce(ctx, tell, before, lost); err != nil {
			return err
		}
	}
}

// restoreOnce connects again, unless somebody else has since there were `before`
// connections.
func (n *Node) restoreOnce(ctx context.Context, tell ui.Reporter, before int, lost *LostError) error {
	if err := n.again.begin(ctx); err != nil {
		return err
	}
	defer n.again.end()
	if n.again.count(0) != before {
		return nil
	}
	if n.again.vain != nil { // another login might lock the account
		return n.again.vain
	}
	tell.Warn("the connection is lost (%v); connecting again", lost.Err)
	if err := n.restore(ctx, tell); err != nil {
		if IsHopeless(err) {
			n.again.vain = err
		}
		return err
	}
	n.again.count(1)
	tell.Info("connected again")
	return nil
}

func (n *Node) restore(ctx context.Context, tell ui.Reporter) error {
	pauses := restorePauses()
	for {
		err := n.Reconnect(ctx)
		if err == nil || IsHopeless(err) || ctx.Err() != nil {
			return err
		}
		tell.Step("not reachable: %v; trying again in %s", err, pauses[0])
		if err := wait.For(ctx, pauses[0]); err != nil {
			return err
		}
		pauses = pauses[min(1, len(pauses)-1):]
	}
}
