package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/rollout/content"
)

// view is everything that the controller sees at one time.
type view struct {
	rollouts []fleetv1.NodeRollout // the oldest first
	nodes    []corev1.Node
	states   map[string]*fleetv1.NodeState
}

func (r *reconciler) look(ctx context.Context) (view, error) {
	var rollouts fleetv1.NodeRolloutList
	var nodes corev1.NodeList
	var states fleetv1.NodeStateList
	for _, list := range []client.ObjectList{&rollouts, &nodes, &states} {
		// Nothing changes these objects, so they need not be copied.
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return view{}, fmt.Errorf("list the objects of the fleet: %w", err)
		}
	}
	v := view{rollouts: rollouts.Items, nodes: nodes.Items, states: map[string]*fleetv1.NodeState{}}
	slices.SortFunc(v.rollouts, func(a, b fleetv1.NodeRollout) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range states.Items {
		v.states[states.Items[i].Name] = &states.Items[i]
	}
	r.written.overlay(v.states)
	maps.DeleteFunc(r.drained, func(name string, _ time.Time) bool { return !mayDrain(v.states[name]) })
	return v, nil
}

// mayDrain reports whether a node is claimed and not released, so that its pods may have to leave.
func mayDrain(s *fleetv1.NodeState) bool {
	return s != nil && s.Spec.Rollout != "" && s.Spec.Verdict == "" && !s.Spec.Released
}

// input returns the state of one rollout.
func (r *reconciler) input(v view, one *fleetv1.NodeRollout, now time.Time) (rollout.Input, error) {
	in := rollout.Input{Name: one.Name, Spec: one.Spec, Generation: one.Generation, Now: now, Wrong: r.wrong(one),
		Before: one.Status}
	selectors := make([]labels.Selector, len(v.rollouts))
	for i := range v.rollouts {
		selector, err := metav1.LabelSelectorAsSelector(&v.rollouts[i].Spec.Selector)
		if err != nil && v.rollouts[i].Name == one.Name {
			return in, fmt.Errorf("read spec.selector: %w", err)
		}
		if err != nil {
			selector = labels.Nothing()
		}
		selectors[i] = selector
	}
	for i := range v.nodes {
		n := &v.nodes[i]
		if n.DeletionTimestamp != nil {
			continue
		}
		state := v.states[n.Name]
		owner := slices.IndexFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(n.Labels)) })
		left := owner < 0 && state != nil && state.Spec.Rollout == one.Name && state.Spec.Verdict == ""
		if left || owner >= 0 && v.rollouts[owner].Name == one.Name {
			node := r.nodeOf(n, state)
			node.Left = left
			in.Nodes = append(in.Nodes, node)
		}
	}
	return in, nil
}

// judged is the judgement of one generation of a rollout's spec. A rollout that is deleted and made again has the
// same name and generation.
type judged struct {
	uid        types.UID
	generation int64
	wrong      string
}

// wrong names the fields of a rollout's content that the nodes would refuse; "" if there are none. The schema
// cannot express all rules of node files, and a node would find the rest only after its drain.
func (r *reconciler) wrong(one *fleetv1.NodeRollout) string {
	before, known := r.judged[one.Name]
	if !known || before.uid != one.UID || before.generation != one.Generation {
		before = judged{uid: one.UID, generation: one.Generation}
		if empty(one.Spec.Content) {
			before.wrong = "spec.content: it has nothing to do; set provisioners, or a field of setup"
		} else if _, err := content.Document(anyNode, one.Spec.Content); err != nil {
			before.wrong = shortened(err.Error())
		} else if err := rollout.CheckWindow(one.Spec.Window); err != nil {
			before.wrong = err.Error()
		}
		r.judged[one.Name] = before
	}
	return before.wrong
}

// empty reports whether a content has nothing to do. The schema refuses a content without fields, but allows empty ones.
func empty(c fleetv1.Content) bool {
	return len(c.Provisioners) == 0 && (c.Setup == nil || equality.Semantic.DeepEqual(*c.Setup, fleetv1.Setup{}))
}

// anyNode stands for the name of a node, on which no rule for a content depends.
const anyNode = "node"

func (r *reconciler) nodeOf(n *corev1.Node, state *fleetv1.NodeState) rollout.Node {
	ready, since := readiness(n)
	return rollout.Node{Name: n.Name, Ready: ready, ReadySince: since, Cordoned: n.Spec.Unschedulable,
		Lease: r.leases[n.Name].renewed, DrainRound: r.drained[n.Name], State: state}
}

// lease is the renewal of a node's lease, and when it was read.
type lease struct{ renewed, read time.Time }

// leaseInterval is the shortest time between two reads of a node's lease.
const leaseInterval = 2 * time.Second

// readLeases reads the leases of these nodes that were not read just before, and reports whether one
// has changed.
func (r *reconciler) readLeases(ctx context.Context, nodes []string, now time.Time) (changed bool, err error) {
	for _, name := range nodes {
		if now.Sub(r.leases[name].read) < leaseInterval {
			continue
		}
		object, err := r.cluster.LeaseObject(ctx, name)
		if err != nil {
			return changed, err
		}
		found := lease{read: now}
		if object != nil && object.Spec.RenewTime != nil {
			found.renewed = object.Spec.RenewTime.Time
		}
		changed = changed || !found.renewed.Equal(r.leases[name].renewed)
		r.leases[name] = found
	}
	return changed, nil
}

// written holds the NodeStates as this controller wrote them, until its cache has them. Without them, a
// decision could be made before the claims of the previous one are seen.
type written map[string]write

// write is a NodeState as this controller wrote it. An object that is new may not be in the cache yet; if an
// older one is not there, it was deleted.
type write struct {
	state *fleetv1.NodeState
	isNew bool
}

func (w written) overlay(states map[string]*fleetv1.NodeState) {
	for name, own := range w {
		seen := states[name]
		if seen == nil && !own.isNew ||
			seen != nil && (seen.UID != own.state.UID || seen.Generation >= own.state.Generation) {
			delete(w, name)
			continue
		}
		states[name] = own.state
		w[name] = write{state: own.state, isNew: seen == nil}
	}
}
