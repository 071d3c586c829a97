package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/rollout"
)

// reconciler makes and carries out the decisions, one after the other.
type reconciler struct {
	client  client.Client // reads from the cache
	live    client.Reader // reads from the API server
	cluster *cluster.Cluster
	now     func() time.Time

	written written
	leases  map[string]lease
	judged  map[string]judged    // by the names of rollouts
	drained map[string]time.Time // the end of the last round of each node's drain
}

func newReconciler(c client.Client, live client.Reader, cluster *cluster.Cluster) *reconciler {
	return &reconciler{client: c, live: live, cluster: cluster, now: time.Now, written: written{}, leases: map[string]lease{},
		judged: map[string]judged{}, drained: map[string]time.Time{}}
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	v, err := r.look(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	var one *fleetv1.NodeRollout
	for i := range v.rollouts {
		if v.rollouts[i].Name == request.Name && v.rollouts[i].DeletionTimestamp == nil {
			one = v.rollouts[i].DeepCopy()
		}
	}
	if one == nil {
		return reconcile.Result{}, nil
	}
	decision, err := r.run(ctx, v, one)
	switch {
	case outdated(err): // the status was read before a change to the rollout
		return reconcile.Result{RequeueAfter: gather}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: decision.Again}, nil
}

// run decides and acts.
func (r *reconciler) run(ctx context.Context, v view, one *fleetv1.NodeRollout) (rollout.Decision, error) {
	now := r.now()
	in, err := r.input(v, one, now)
	if err != nil { // only a person can correct the selector
		status := one.Status
		status.State, status.Message = rollout.StateStopped, err.Error()
		return rollout.Decision{}, r.writeStatus(ctx, one, rollout.Decision{Status: status}, err.Error())
	}
	decision := rollout.Decide(in)
	changed, err := r.readLeases(ctx, decision.Check, now)
	if err != nil {
		return decision, err
	}
	if changed {
		if in, err = r.input(v, one, now); err != nil {
			return decision, err
		}
		decision = rollout.Decide(in)
	}
	again, failed := r.actAll(ctx, v, one, in, decision)
	if again {
		decision.Again = gather
	}
	return decision, errors.Join(failed, r.writeStatus(ctx, one, decision, in.Wrong))
}

// actAll carries out a decision. It reports whether the decision was made from an older state in part, so that
// another one must follow soon.
func (r *reconciler) actAll(ctx context.Context, v view, one *fleetv1.NodeRollout, in rollout.Input,
	decision rollout.Decision) (again bool, failed error) {
	byName := map[string]rollout.Node{}
	for _, n := range in.Nodes {
		byName[n.Name] = n
	}
	var drained []string
	defer func() { // nodes rest after the whole round: with many of them, the first ones would be due at its end
		for _, name := range drained {
			r.drained[name] = r.now()
		}
	}()
	drains := r.cluster.NewDrainRound()
	for _, a := range decision.Actions {
		if a.Do == rollout.DoClaim && again { // it may have been decided from too few nodes on their way
			continue
		}
		if r.superseded(ctx, one) { // a person may have ended the rollout in a long round
			return true, failed
		}
		if a.Do == rollout.DoDrain {
			drained = append(drained, a.Node)
		}
		err := r.act(ctx, action{Action: a, one: one, hash: decision.Status.Hash, node: byName[a.Node], now: in.Now,
			uid: func() *metav1.OwnerReference { return ownerOf(v.nodes, a.Node) }, drains: drains})
		if outdated(err) { // the next event brings what was missing; it may have come already
			again = true
			continue
		}
		failed = errors.Join(failed, err) // one node's error keeps no other node
	}
	return again, failed
}

// superseded reports whether the rollout has another spec now, or is gone.
func (r *reconciler) superseded(ctx context.Context, one *fleetv1.NodeRollout) bool {
	var now fleetv1.NodeRollout
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(one), &now, client.UnsafeDisableDeepCopy); err != nil {
		return apierrors.IsNotFound(err)
	}
	return now.UID != one.UID || now.Generation != one.Generation || now.DeletionTimestamp != nil
}

// ownerOf returns a reference to the Node, so that its NodeState ends with it.
func ownerOf(nodes []corev1.Node, name string) *metav1.OwnerReference {
	for i := range nodes {
		if nodes[i].Name == name {
			return &metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: name, UID: nodes[i].UID}
		}
	}
	return nil
}

// writeStatus writes the status if it has changed. wrong explains why the spec cannot be carried out; "": it can.
func (r *reconciler) writeStatus(ctx context.Context, one *fleetv1.NodeRollout, decision rollout.Decision,
	wrong string) error {
	before := one.DeepCopy()
	status := decision.Status
	status.ObservedGeneration, status.Conditions = one.Generation, one.Status.Conditions
	set := func(kind string, value bool, reason, message string) {
		condition := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason,
			Message: message, ObservedGeneration: one.Generation}
		if value {
			condition.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	set(fleetv1.Valid, wrong == "", validity(wrong), wrong)
	set(fleetv1.Progressing, rollout.Progressing(status), status.State, status.Message)
	set(fleetv1.Available, status.Updated == status.Nodes && status.Nodes > 0, status.State, status.Message)
	set(fleetv1.Degraded, rollout.Degraded(status), status.State, status.Message)
	one.Status = status
	if equality.Semantic.DeepEqual(before.Status, status) {
		return nil
	}
	// A status that was made from an older one would forget failed nodes that were deleted since.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, one, patch); err != nil {
		return fmt.Errorf("write the status of rollout %s: %w", one.Name, err)
	}
	return nil
}

// validity returns the reason of the condition Valid.
func validity(wrong string) string {
	if wrong != "" {
		return "WrongField"
	}
	return "RulesObeyed"
}
