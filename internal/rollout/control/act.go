package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/rollout"
)

// action is one action with the objects that it concerns.
type action struct {
	rollout.Action
	one    *fleetv1.NodeRollout
	hash   string
	node   rollout.Node
	uid    func() *metav1.OwnerReference
	now    time.Time
	drains *cluster.DrainRound
}

// act carries out one action. Every write is conditional on the order that the decision has seen.
func (r *reconciler) act(ctx context.Context, a action) error {
	switch a.Do {
	case rollout.DoClaim:
		return r.claim(ctx, a)
	case rollout.DoDrain:
		return r.drain(ctx, a)
	case rollout.DoRelease:
		return r.release(ctx, a)
	case rollout.DoReturn:
		return r.change(ctx, a, func(s *fleetv1.NodeStateSpec) {
			s.Action, s.Reason = fleetv1.ActionRollBack, a.Reason
		})
	case rollout.DoConvict:
		return r.convict(ctx, a)
	case rollout.DoLetGo:
		// Uncordon first: once the claim is gone, no later decision would do it.
		if err := r.uncordon(ctx, a); err != nil {
			return err
		}
		return r.change(ctx, a, func(s *fleetv1.NodeStateSpec) { s.Rollout, s.Verdict, s.Reason = "", "", "" })
	}
	return fmt.Errorf("carry out the action %q: it is not known", a.Do)
}

// claim records the order for a node, not released yet.
func (r *reconciler) claim(ctx context.Context, a action) error {
	order := func(s *fleetv1.NodeState) {
		if owner := a.uid(); owner != nil {
			s.OwnerReferences = []metav1.OwnerReference{*owner}
		}
		s.Spec = fleetv1.NodeStateSpec{Rollout: a.one.Name, Hash: a.hash, Action: a.Order,
			Since: metav1.NewTime(a.now), Content: a.one.Spec.Content, Reason: a.Reason}
		if a.Order == fleetv1.ActionRollBack {
			s.Spec.RollbackGeneration = a.one.Generation
		}
	}
	if a.node.State != nil {
		return r.write(ctx, a, order)
	}
	state := &fleetv1.NodeState{ObjectMeta: metav1.ObjectMeta{Name: a.Node}}
	order(state)
	return r.wrote(a, state, r.client.Create(ctx, state))
}

// change changes the order of a node.
func (r *reconciler) change(ctx context.Context, a action, f func(*fleetv1.NodeStateSpec)) error {
	return r.write(ctx, a, func(s *fleetv1.NodeState) {
		f(&s.Spec)
		s.Spec.Since = metav1.NewTime(a.now)
	})
}

// mostTries bounds the tries of one write.
const mostTries = 5

// write changes a NodeState, unless its spec is no longer the one that the decision has seen. Reports of the node
// since then do not matter: a node that reports without a pause would otherwise never get another order.
func (r *reconciler) write(ctx context.Context, a action, f func(*fleetv1.NodeState)) error {
	seen := a.node.State
	for try := 1; ; try++ {
		state := seen.DeepCopy()
		f(state)
		patch := client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})
		err := r.client.Patch(ctx, state, patch)
		if !apierrors.IsConflict(err) || try == mostTries {
			return r.wrote(a, state, err)
		}
		live := &fleetv1.NodeState{}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(seen), live); err != nil {
			return r.wrote(a, state, err)
		}
		if live.UID != seen.UID || live.Generation != seen.Generation {
			return r.wrote(a, state, err)
		}
		seen = live
	}
}

func (r *reconciler) wrote(a action, state *fleetv1.NodeState, err error) error {
	if err != nil {
		delete(r.written, a.Node)
		return fmt.Errorf("%s node %s: %w", a.Do, a.Node, err)
	}
	r.written[a.Node] = write{state: state, isNew: a.node.State == nil || r.written[a.Node].isNew}
	return nil
}

// drain does one round of a drain, and releases the node when no pod is left. A drain that would lose
// pods is the end for this node: no later round would differ.
func (r *reconciler) drain(ctx context.Context, a action) error {
	left, err := a.drains.Step(ctx, a.Node, drainOptions(a.one.Spec.Drain))
	var refused *cluster.DrainRefusedError
	switch {
	case errors.As(err, &refused):
		a.Do, a.Verdict, a.Reason, a.Uncordon = rollout.DoConvict, fleetv1.VerdictFailed, refused.Error(), true
		return r.convict(ctx, a)
	case err != nil || len(left) > 0:
		return err
	}
	return r.release(ctx, a)
}

// release lets the node begin.
func (r *reconciler) release(ctx context.Context, a action) error {
	a.Do = rollout.DoRelease
	return r.change(ctx, a, func(s *fleetv1.NodeStateSpec) { s.Released = true })
}

func drainOptions(d *fleetv1.Drain) cluster.DrainOptions {
	o := cluster.DrainOptions{DeleteEmptyDir: d.DeleteEmptyDir, Force: d.Force}
	if d.GracePeriod != "" {
		grace := rollout.DurationOf(d.GracePeriod, 0)
		o.GracePeriod = &grace
	}
	return o
}

// convict records the verdict. It uncordons the node first, or cordons one that may not work: after the verdict, no
// later decision would. A node whose drain is late is released if its pods have left by now.
func (r *reconciler) convict(ctx context.Context, a action) error {
	if a.Draining {
		left, err := a.drains.Step(ctx, a.Node, drainOptions(a.one.Spec.Drain))
		switch {
		case err != nil: // an eviction that fails each time must not keep the node from its end
			a.Reason += ": " + err.Error()
		case len(left) > 0:
			a.Reason += ": " + left.String()
		default: // they have left since the last round
			return r.release(ctx, a)
		}
	}
	var err error
	if a.Uncordon {
		err = r.uncordon(ctx, a)
	} else {
		err = r.cluster.Cordon(ctx, a.Node)
	}
	if err != nil {
		return err
	}
	return r.change(ctx, a, a.judge)
}

func (a action) judge(s *fleetv1.NodeStateSpec) {
	s.Verdict, s.Reason = a.Verdict, shortened(a.Reason)
}

// uncordon removes the cordon of a drain, if there can be one. The node that the decision has seen may be older
// than the cordon.
func (r *reconciler) uncordon(ctx context.Context, a action) error {
	if !a.node.Cordoned && a.one.Spec.Drain == nil {
		return nil
	}
	_, err := r.cluster.Uncordon(ctx, a.Node)
	return err
}

// maxReason limits a reason, in bytes.
const maxReason = 1024

func shortened(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
}

// outdated reports whether an error means that the decision was made from older objects.
func outdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}
