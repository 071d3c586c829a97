package push

import (
	"context"
	"fmt"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Settle looks for a transaction that an earlier, interrupted command left, and follows it to its
// end. Each push begins with the same work. Settle holds the node's lock while it follows an
// unfinished transaction. With DryRun it only reports the transaction. Of the options, only Holder,
// DryRun and KeepJournal matter.
func Settle(ctx context.Context, n *node.Node, options Options, r ui.Reporter) error {
	w := newWork(n, config.Document{}, options, r)
	now, err := w.inspect(ctx)
	if err != nil {
		return err
	}
	defer w.unlock(ctx)
	_, err = w.settlePending(ctx, now)
	return err
}

// Acknowledge deletes the journal of a finished transaction, which KeepJournal has left on the node.
func Acknowledge(ctx context.Context, n *node.Node, id string) error {
	if _, err := n.Swap.Acknowledge(ctx, &agentv1.AcknowledgeRequest{Id: id}); err != nil {
		return fmt.Errorf("acknowledge transaction %s: %w", id, err)
	}
	return nil
}

// Transact makes the node run a transaction, whose files are already staged, and follows it to its
// end. The caller holds the node's lock. A broken connection releases that lock; once Transact has
// the outcome, it takes the lock again for the caller.
//
// Transact returns the same errors as Push. began reports whether the node may have begun the
// transaction. In that case the staged files belong to the transaction.
func Transact(ctx context.Context, n *node.Node, plan *agentv1.SwapPlan, r ui.Reporter) (
	outcome *agentv1.SwapOutcome, began bool, err error) {
	w := newWork(n, config.Document{}, Options{Holder: plan.GetHolder()}, r)
	w.locked = true
	f := &following{work: w}
	outcome, err = f.run(ctx, plan)
	switch {
	case cutShort(ctx, err) && f.begun:
		return nil, true, &InterruptedError{Err: context.Cause(ctx)}
	case err != nil:
		return nil, f.begun, err
	}
	w.acknowledge(ctx, f.id)
	if !w.locked { // the connection broke, which released the lock
		if err := w.lockAgain(ctx); err != nil {
			return outcome, true, fmt.Errorf("lock the node again: %w", err)
		}
	}
	if outcome.GetResult() != agentv1.SwapResult_SWAP_RESULT_COMMITTED {
		return outcome, true, &RolledBackError{Outcome: outcome}
	}
	return outcome, true, nil
}
