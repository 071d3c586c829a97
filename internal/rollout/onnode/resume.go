package onnode

import (
	"context"

	"github.com/swdt-dev/swdt/internal/push"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// end is the end of an order that an earlier attempt has begun.
type end struct {
	phase   fleetv1.Phase
	message string
}

func (e *end) phaseOrNone() fleetv1.Phase {
	if e == nil {
		return ""
	}
	return e.phase
}

func (e *end) messageOrNone() string {
	if e == nil {
		return ""
	}
	return e.message
}

// resume looks for a transaction of this order that an earlier attempt has left, and follows it to its
// end. It returns nil if the order is still to be carried out, or if the transaction has done it: to
// carry it out again then changes nothing. Without resume, a binary that was undone would be tried again.
func (w *order) resume(ctx context.Context) (*end, error) {
	t, err := w.transaction(ctx)
	if err != nil || t == nil {
		return nil, err
	}
	w.journal = t.ID
	if err := push.Settle(ctx, w.node, w.pushOptions(), w.Reporter); err != nil {
		return nil, err
	}
	if t.Result != "" {
		return w.endOf(*t), nil
	}
	t, err = w.transaction(ctx)
	switch {
	case err != nil:
		return nil, err
	case t == nil:
		return w.settled(ctx)
	}
	return w.endOf(*t), nil
}

// transaction returns the order's own transaction; nil if the node has no journal of one.
func (w *order) transaction(ctx context.Context) (*push.Recovered, error) {
	status, err := push.Status(ctx, w.node, w.doc, push.StatusOptions{Sources: w.Sources}, w.Reporter)
	if err != nil {
		return nil, err
	}
	for _, t := range status.Transactions {
		if t.Holder == w.holder() {
			return &t, nil
		}
	}
	return nil, nil
}

// endOf returns the end that a transaction has recorded; nil if it was committed.
func (w *order) endOf(t push.Recovered) *end {
	switch {
	case t.Result == "rolledBack" && w.state.Spec.Action == fleetv1.ActionRollBack:
		return &end{fleetv1.PhaseFailed, t.Message + "; the node still has the binaries of the content"}
	case t.Result == "rolledBack":
		return &end{fleetv1.PhaseRolledBack, t.Message + "; the node is back to the previous binaries"}
	case t.Result == "failed":
		return &end{fleetv1.PhaseFailed, t.Message + "; not everything runs that ran before"}
	}
	return nil
}

// settled returns the end of a transaction whose journal is gone, since another swdt has collected it: the
// binaries on the node show it.
func (w *order) settled(ctx context.Context) (*end, error) {
	if w.state.Spec.Action == fleetv1.ActionRollBack {
		return nil, nil // the next attempt restores what is left
	}
	status, err := push.Status(ctx, w.node, w.doc, push.StatusOptions{Sources: w.Sources}, w.Reporter)
	if err != nil {
		return nil, err
	}
	for _, c := range status.Components {
		if wanted := w.wanted(c.Name); wanted != "" && wanted != c.SHA256 {
			return &end{fleetv1.PhaseRolledBack, c.Name + " did not work with the new binary; the node is back to the " +
				"previous binaries: another swdt has collected the reason from the journal " + w.journal}, nil
		}
	}
	return nil, nil
}
