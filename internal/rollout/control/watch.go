package control

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// osLabel is the label of Windows nodes.
const osLabel, windowsOS = "kubernetes.io/os", "windows"

// gather is the time for which events are gathered into one decision. A wave of many nodes then costs
// few decisions.
const gather = 100 * time.Millisecond

// longestRetry bounds the time to the next decision after an error, so that one node's error does not slow the drains
// of others.
const longestRetry = 10 * time.Second

// cached limits what the controller keeps in memory: the Windows nodes, without the lists of their images.
func cached() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {
			Label: labels.SelectorFromSet(labels.Set{osLabel: windowsOS}),
			Transform: func(object any) (any, error) {
				if n, ok := object.(*corev1.Node); ok {
					n.ManagedFields, n.Status.Images = nil, nil
				}
				return object, nil
			},
		}},
	}
}

// watch makes the manager call r after each event that can change a decision.
func watch(manager ctrl.Manager, r *reconciler) error {
	all := handler.TypedFuncs[client.Object, reconcile.Request]{
		CreateFunc: func(ctx context.Context, _ event.TypedCreateEvent[client.Object], q queue) { r.enqueueAll(ctx, q) },
		UpdateFunc: func(ctx context.Context, _ event.TypedUpdateEvent[client.Object], q queue) { r.enqueueAll(ctx, q) },
		DeleteFunc: func(ctx context.Context, _ event.TypedDeleteEvent[client.Object], q queue) { r.enqueueAll(ctx, q) },
	}
	unique := true
	return ctrl.NewControllerManagedBy(manager).
		Named("noderollout").
		// All rollouts: the nodes of one that ends or chooses others go to the next one that chooses them.
		Watches(&fleetv1.NodeRollout{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&fleetv1.NodeState{}, all).
		Watches(&corev1.Node{}, all, builder.WithPredicates(predicate.Funcs{UpdateFunc: nodeMatters})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, SkipNameValidation: &unique,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](gather, longestRetry)}).
		Complete(r)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (r *reconciler) enqueueAll(ctx context.Context, q queue) {
	var rollouts fleetv1.NodeRolloutList
	if err := r.client.List(ctx, &rollouts); err != nil {
		return // the cache is closed
	}
	for _, rollout := range rollouts.Items {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: rollout.Name}}, gather)
	}
}

// nodeMatters reports whether an update of a Node can change a decision. Most updates are heartbeats.
func nodeMatters(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*corev1.Node)
	now, ok2 := e.ObjectNew.(*corev1.Node)
	if !ok1 || !ok2 {
		return true
	}
	a, sinceA := readiness(before)
	b, sinceB := readiness(now)
	return a != b || !sinceA.Equal(sinceB) || before.Spec.Unschedulable != now.Spec.Unschedulable ||
		!equality.Semantic.DeepEqual(before.Labels, now.Labels)
}

// readiness returns a node's condition Ready, and the time of its last change.
func readiness(n *corev1.Node) (bool, time.Time) {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return false, time.Time{}
}
