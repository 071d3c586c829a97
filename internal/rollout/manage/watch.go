package manage

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/rollout"
)

// gather is the shortest time between two reports of a watch. A wave of many nodes then makes few reports.
const gather = 250 * time.Millisecond

// refusalsUntilEnd is the number of refusals in succession that end a watch. An API server that starts
// refuses everything for a moment, until it has read the roles. The informer waits longer each time.
const refusalsUntilEnd = 4

// WatchOptions configure Watch.
type WatchOptions struct {
	Names []string // of rollouts; none: all rollouts
	// See receives the rollouts at first, and each time they have changed. Its error ends the watch.
	See func(Report) error
	// Lost is called when the connection to the API server is lost; the watch goes on by itself.
	Lost func(error)
}

// Watch reports rollouts until all of them have ended, and returns the last report. A rollout has ended if
// no node is on its way, and no further node will be touched without a person's help.
func Watch(ctx context.Context, c *cluster.Cluster, o WatchOptions) (Report, error) {
	last, err := Look(ctx, c, o.Names...)
	if err != nil {
		return last, err
	}
	if err := o.See(last); err != nil || last.Ended() {
		return last, err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	w := newWatched(ctx, c, end, o.Lost)
	if !cache.WaitForCacheSync(ctx.Done(), w.rollouts.HasSynced, w.states.HasSynced) {
		return last, context.Cause(ctx)
	}
	for {
		if last, err = w.report(c, o.Names); err != nil {
			return last, err
		}
		if err := o.See(last); err != nil || last.Ended() {
			return last, err
		}
		if !w.next(ctx) {
			return last, context.Cause(ctx)
		}
	}
}

// Ended reports whether all rollouts have ended.
func (r Report) Ended() bool {
	for _, one := range r.Rollouts {
		switch one.State {
		case rollout.StateComplete, rollout.StateStopped, rollout.StateAborted, rollout.StateRolledBack:
			if !one.Seen || one.Working > 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// watched are the objects of a fleet, kept up to date.
type watched struct {
	rollouts, states cache.SharedIndexInformer
	changed          chan struct{} // has a value after a change
}

// newWatched watches until ctx ends. It ends ctx if the API server refuses the watch.
func newWatched(ctx context.Context, c *cluster.Cluster, end context.CancelCauseFunc, lost func(error)) *watched {
	w := &watched{changed: make(chan struct{}, 1)}
	note := func(any) {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
	watch := func(resource schema.GroupVersionResource) cache.SharedIndexInformer {
		informer, refusals := cluster.NewInformer(c.Dynamic(), resource, ""), 0
		// Both functions fail only after the start of the informer.
		_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
			if refused {
				refusals++
			} else {
				refusals = 0
			}
			switch {
			case refused && refusals >= refusalsUntilEnd:
				end(c.Failure("watch "+resource.Resource, permission("watch", resource, ""), err))
			case refused, apierrors.IsResourceExpired(err), ctx.Err() != nil: // the informer tries again
			default:
				lost(err)
			}
		})
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: note, UpdateFunc: func(_, object any) { note(object) }, DeleteFunc: note,
		})
		go informer.RunWithContext(ctx)
		return informer
	}
	w.rollouts, w.states = watch(fleetv1.RolloutResource()), watch(fleetv1.StateResource())
	return w
}

// next waits for the next change, or reports false at the end of ctx. Changes are gathered.
func (w *watched) next(ctx context.Context) bool {
	gathered := time.NewTimer(gather)
	defer gathered.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-gathered.C:
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.changed:
		return true
	}
}

func (w *watched) report(c *cluster.Cluster, names []string) (Report, error) {
	report := Report{Cluster: c.Server(), Rollouts: []Rollout{}, Unmade: []string{}}
	rollouts, err := stored[fleetv1.NodeRollout](w.rollouts)
	if err != nil {
		return report, err
	}
	states, err := stored[fleetv1.NodeState](w.states)
	if err != nil {
		return report, err
	}
	err = report.fill(rollouts, states, names)
	return report, err
}

// stored returns the objects of an informer.
func stored[T any](informer cache.SharedIndexInformer) (all []T, err error) {
	for _, object := range informer.GetStore().List() {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		var one T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &one); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		all = append(all, one)
	}
	return all, nil
}
