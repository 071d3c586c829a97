// Package waves brings a change to several nodes from your machine, a few at a time. It asks rollout.Decide, as the
// controller of a fleet does, so both have the same gates: nodes that may be unavailable, a canary with its pause, and an
// end after the first failure. It keeps nothing: a later run goes on, since nodes that have the change need none.
package waves

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
)

// Options are the gates.
type Options struct {
	// MaxUnavailable is the number of nodes, or their percentage, that may be unavailable at once: those that change, and
	// the others that are cordoned or not Ready.
	MaxUnavailable intstr.IntOrString
	// Canary are the first nodes, after which the change pauses; the zero CanaryStep: none.
	Canary fleetv1.CanaryStep
	// Look returns the nodes as the cluster has them, by the names that Run gets. Only Name, Ready and Cordoned count.
	Look func(ctx context.Context) ([]rollout.Node, error)
	// Waits receives why no further node begins, if none is on its way. It may be called several times.
	Waits func(why string)
}

// availableIn is how long nodes may take to become available, or the cluster to show them, before no further node begins.
const availableIn = 5 * time.Minute

// interval is the pause between two looks at the nodes.
const interval = 2 * time.Second

// rolloutName is that of the rollout in the states of the nodes. No other rollout has states here.
const rolloutName = "waves"

// NotBegunError is the error of a node on which the change has not begun.
type NotBegunError struct {
	Why   string
	Cause error // nil: none
}

func (e *NotBegunError) Error() string {
	return "not begun: " + e.Why + "; then run the same command again, which goes on with the nodes that remain"
}

func (e *NotBegunError) Unwrap() error { return e.Cause }

// run is one change of several nodes.
type run struct {
	options Options
	names   []string
	work    func(ctx context.Context, name string) error

	states map[string]*fleetv1.NodeState // of nodes that have begun
	errs   map[string]error              // of nodes that have ended
	ended  chan ending
	failed []string
	unread time.Time // since when looks fail; zero: the last one has not
}

// ending is the end of the work on a node.
type ending struct {
	name string
	err  error
}

// Run does the work on the nodes of these names, and returns the error of each; nil: it is done. A node on which it has
// not begun has a *NotBegunError, or the cause of ctx.
func Run(ctx context.Context, names []string, o Options, work func(ctx context.Context, name string) error) map[string]error {
	r := &run{options: o, names: names, work: work, states: map[string]*fleetv1.NodeState{}, errs: map[string]error{},
		ended: make(chan ending, len(names))}
	why := r.all(ctx)
	for len(r.errs) < len(r.states) { // they end by ctx, or by themselves
		r.end(<-r.ended)
	}
	for _, name := range names {
		if _, ended := r.errs[name]; !ended {
			r.errs[name] = why
		}
	}
	return r.errs
}

// all does the work until it is done on all nodes, or no further node may begin. It returns why.
func (r *run) all(ctx context.Context) error {
	var since time.Time // too few nodes are available; zero: enough
	for len(r.errs) < len(r.names) {
		nodes, err := r.options.Look(ctx)
		if err != nil {
			if err := r.lookAgain(ctx, err); err != nil {
				return err
			}
			continue
		}
		r.unread = time.Time{}
		decision := r.decide(nodes)
		begun, pause := r.begin(ctx, decision), decision.Again
		switch {
		case begun || len(r.states) > len(r.errs):
			since = time.Time{}
		case len(r.failed) > 0:
			return &NotBegunError{Why: "the change has failed on " + strings.Join(r.failed, ", ") + ": repair that first"}
		case pause > 0:
			r.options.Waits(decision.Status.Message)
		case since.IsZero():
			since, pause = time.Now(), interval
			r.options.Waits(unavailable(nodes))
		case time.Since(since) >= availableIn:
			return &NotBegunError{Why: fmt.Sprintf("%s after %s: make these nodes available, or name each of them alone",
				unavailable(nodes), availableIn)}
		default:
			pause = interval
		}
		if err := r.await(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// lookAgain waits until the next look after one that has failed. It returns an error if looks have failed for too long.
func (r *run) lookAgain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.unread.IsZero():
		r.unread = time.Now()
		r.options.Waits(fmt.Sprintf("the nodes cannot be read: %v", err))
	case time.Since(r.unread) >= availableIn:
		return &NotBegunError{Why: fmt.Sprintf("the nodes cannot be read after %s: %v: repair that first", availableIn, err),
			Cause: err}
	}
	return r.await(ctx, interval)
}

// unavailable names the nodes that are not available.
func unavailable(nodes []rollout.Node) string {
	var away []string
	for _, n := range nodes {
		if !n.Ready || n.Cordoned {
			away = append(away, n.Name)
		}
	}
	return "cordoned or not Ready: " + strings.Join(away, ", ")
}

// decide asks which nodes may begin now.
func (r *run) decide(nodes []rollout.Node) rollout.Decision {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		nodes[i].State = r.states[nodes[i].Name]
	}
	spec := fleetv1.NodeRolloutSpec{MaxUnavailable: &r.options.MaxUnavailable, FailureLimit: 1}
	if r.options.Canary != (fleetv1.CanaryStep{}) {
		spec.Canary = []fleetv1.CanaryStep{r.options.Canary}
	}
	return rollout.Decide(rollout.Input{Name: rolloutName, Spec: spec, Nodes: nodes, Now: time.Now()})
}

// begin starts the work on the nodes that a decision claims. The decision's other actions are for nodes that are on
// their way, whose work goes on by itself.
func (r *run) begin(ctx context.Context, decision rollout.Decision) (begun bool) {
	for _, action := range decision.Actions {
		if action.Do != rollout.DoClaim {
			continue
		}
		begun = true
		state := &fleetv1.NodeState{}
		state.Spec.Rollout, state.Spec.Hash = rolloutName, rollout.HashOf(fleetv1.Content{})
		state.Spec.Action, state.Spec.Released = fleetv1.ActionApply, true
		state.Spec.Since.Time = time.Now()
		r.states[action.Node] = state
		go func() { r.ended <- ending{action.Node, r.work(ctx, action.Node)} }()
	}
	return begun
}

// await waits until the work on a node ends, or for a time if that is not 0.
func (r *run) await(ctx context.Context, most time.Duration) error {
	var over <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case end := <-r.ended:
		r.end(end)
		return nil
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end records how the work on a node has ended.
func (r *run) end(e ending) {
	state := r.states[e.name]
	state.Spec.Verdict, state.Spec.Since.Time = fleetv1.VerdictUpdated, time.Now()
	if e.err != nil {
		state.Spec.Verdict = fleetv1.VerdictFailed
		r.failed = append(r.failed, e.name)
	}
	r.errs[e.name] = e.err
}
