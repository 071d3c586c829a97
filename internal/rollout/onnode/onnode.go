// Package onnode is the part of a fleet on a Windows node. It watches the NodeState of its own node, and
// carries out the order in it with the same steps and the same transaction as `swdt setup`,
// `swdt push` and `swdt rollback`. The guardian on the node owns the transaction, so it survives
// the end of the pod, of the kubelet and of containerd.
//
//   - main.go: the program in its pod; access.go: the files that the pod has; onnode.go: from a changed NodeState to an order; watch.go: the NodeState
//   - confirm.go: whether an order is one of its NodeRollout, before anything is done for it
//   - order.go: an order from beginning to end; resume.go: an order that was interrupted
//   - record.go: what the content has replaced, on the node
//   - document.go: the content of a NodeState as a node file
//   - report.go: the status of the NodeState
//
// It keeps nothing itself: the journal, the record and the files on the node show how far an order has come.
package onnode

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/dynamic"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Options configure the program on the node.
type Options struct {
	// Node is the name of the node's Node object, and so of its NodeState.
	Node string
	// Client is the API server's.
	Client dynamic.Interface
	// Open connects to the agent on this machine. The caller of Open closes the result.
	Open func(context.Context) (*node.Node, error)
	// Sources fetches binaries; nil: into the user's cache folder.
	Sources *source.Set
	// Local returns the path under which this program reads a file of the node; nil: the same path.
	Local func(path string) string
	// Retry is the pause after a failed attempt. It doubles with each further one, up to a minute.
	// Default 2 s.
	Retry time.Duration
	// Reporter receives the progress; nil: none is reported.
	Reporter ui.Reporter
}

const (
	defaultRetry = 2 * time.Second
	longestRetry = time.Minute
)

// Run carries out orders until ctx ends. It returns ctx's error.
func Run(ctx context.Context, o Options) error {
	if o.Reporter == nil {
		o.Reporter = ui.Discard{}
	}
	if o.Retry == 0 {
		o.Retry = defaultRetry
	}
	if o.Sources == nil {
		o.Sources = source.NewSet(source.Options{})
	}
	if o.Local == nil {
		o.Local = func(path string) string { return path }
	}
	orders := watch(ctx, o.Client, o.Node)
	pause := o.Retry
	var latest, ended *fleetv1.NodeState
	w := &order{}
	again := make(<-chan time.Time)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case latest = <-orders:
			pause = o.Retry
		case <-again:
		}
		again = nil
		if same(latest, ended) {
			continue
		}
		if !same(latest, w.state) {
			w = &order{Options: o}
		}
		w.state = latest
		newest, replaced, err := w.attempt(ctx, orders)
		latest = newest
		switch {
		case replaced:
			again, pause = time.After(0), o.Retry
		case err == nil:
			ended = latest
		case ctx.Err() == nil:
			o.Reporter.Warn("%v; trying again in %s", err, pause)
			again = time.After(pause)
			pause = min(2*pause, longestRetry)
		}
	}
}

// attempt carries out the order, and returns the newest NodeState. While the node only fetches, another
// order ends the attempt: a slow server of binaries that are no longer wanted must not delay those that are.
func (w *order) attempt(ctx context.Context, orders <-chan *fleetv1.NodeState) (
	newest *fleetv1.NodeState, replaced bool, err error) {
	if w.state == nil || w.state.Spec.Released {
		err := w.carryOut(ctx)
		return w.state, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := make(chan error, 1)
	begun := w.state
	go func() { end <- w.carryOut(ctx) }()
	newest = begun
	for {
		select {
		case err := <-end:
			if newest == begun {
				newest = w.state // with the node's own reports
			}
			return newest, false, err
		case newest = <-orders:
			if !same(newest, begun) {
				cancel()
				return newest, true, <-end
			}
		}
	}
}

// same reports whether a NodeState has the order that has just ended. The watch brings the node's own
// earlier reports of this order after its end.
func same(latest, ended *fleetv1.NodeState) bool {
	return latest != nil && ended != nil && latest.UID == ended.UID &&
		equality.Semantic.DeepEqual(latest.Spec, ended.Spec)
}

// due reports whether the node has to do something for its NodeState. For an order that is not released, that is
// to fetch the binaries; a node that shall restore its previous ones has them. A claim that was let go names no
// rollout.
func due(s *fleetv1.NodeState) bool {
	if s == nil || s.Spec.Rollout == "" || s.Spec.Verdict != "" ||
		!s.Spec.Released && s.Spec.Action != fleetv1.ActionApply {
		return false
	}
	if s.Status.Hash != s.Spec.Hash || s.Status.Action != s.Spec.Action {
		return true
	}
	switch s.Status.Phase {
	case "", fleetv1.PhaseWorking, fleetv1.PhaseRefused: // the same order may have been right since, or is another one
		return true
	case fleetv1.PhaseFetched:
		return s.Spec.Released
	}
	return false
}

// carryOut carries out the order, if there is something to do for it, and reports its end. An error means that it
// must be called again. If only the report has failed, the next call repeats nothing else.
func (w *order) carryOut(ctx context.Context) error {
	defer w.close()
	if w.end == nil && due(w.state) {
		if err := w.bringToEnd(ctx); err != nil {
			return err
		}
	}
	if w.end != nil {
		if err := w.report(ctx, w.end.phase, w.end.message); err != nil {
			return err
		}
	}
	return w.acknowledge(ctx)
}

// bringToEnd carries out the order, and records its end.
func (w *order) bringToEnd(ctx context.Context) error {
	phase, message, err := w.step(ctx)
	if err != nil {
		err = fmt.Errorf("%s on node %s: %w", w.state.Spec.Action, w.Node, err)
		_ = w.report(ctx, fleetv1.PhaseWorking, err.Error()) // the caller reports err itself
		return err
	}
	w.end = &end{phase, message}
	return nil
}

// step confirms the order, and does what it demands now.
func (w *order) step(ctx context.Context) (phase fleetv1.Phase, message string, err error) {
	refusal, err := w.confirm(ctx)
	switch {
	case err != nil:
		return "", "", err
	case refusal != "":
		return fleetv1.PhaseRefused, refusal, nil
	case !w.state.Spec.Released:
		return w.fetch(ctx)
	}
	if err := w.report(ctx, fleetv1.PhaseWorking, ""); err != nil {
		return "", "", err
	}
	return w.run(ctx)
}
