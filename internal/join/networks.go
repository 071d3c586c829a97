package join

import (
	"context"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/hnsnetwork"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// podNetworks removes the HNS networks that the pod network has made since the join. The next cluster's pod network would
// find them and their subnets, and they keep the adapter (rancher/rke2#5335, projectcalico/calico#5828). A join itself has
// nothing to do: noteNetworks records what is there before.
type podNetworks struct{ *joining }

func (s *podNetworks) Name() string { return stepNetworks }

func (s *podNetworks) Plan(context.Context) (plan.Change, error) {
	return plan.Change{}, nil
}

func (s *podNetworks) Apply(context.Context, ui.Reporter) (plan.Outcome, error) {
	return plan.Outcome{}, nil
}

// noteNetworks records the networks that exist before the machine joins.
func noteNetworks(ctx context.Context, n *node.Node) error {
	r, err := load(ctx, n)
	if err != nil || r.NetworksBefore != nil {
		return err
	}
	networks, err := hnsnetwork.List(ctx, n)
	if err != nil {
		return err
	}
	before := &[]networkRecord{}
	for _, network := range networks {
		*before = append(*before, networkRecord{ID: network.ID, Name: network.Name})
	}
	return update(ctx, n, func(r *record) { r.NetworksBefore = before })
}

// added returns the networks of pods that were made since the join; none if the join has recorded nothing, as before this
// version of swdt. A network with the name of a recorded one is that network, which its program has made anew.
func (s *podNetworks) added(ctx context.Context, n *node.Node) ([]hnsnetwork.Network, error) {
	r, err := load(ctx, n)
	if err != nil || r.NetworksBefore == nil {
		return nil, err
	}
	networks, err := hnsnetwork.List(ctx, n)
	return slices.DeleteFunc(networks, func(network hnsnetwork.Network) bool {
		return !network.OfPods() || slices.ContainsFunc(*r.NetworksBefore, func(b networkRecord) bool {
			return strings.EqualFold(b.ID, network.ID) || b.Name == network.Name
		})
	}), err
}

func (s *podNetworks) PlanUndo(ctx context.Context) (plan.Change, error) {
	added, err := s.added(ctx, s.node)
	if err != nil || len(added) == 0 {
		return plan.Change{}, err
	}
	var names []string
	for _, network := range added {
		names = append(names, network.Name)
	}
	return plan.Change{Needed: true, Summary: "remove " + strings.Join(names, ", ") +
		", which interrupts connections for a moment"}, nil
}

func (s *podNetworks) Undo(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	added, err := s.added(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	if err := hnsnetwork.Remove(ctx, s.node, r, added...); err != nil {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, update(ctx, s.node, func(r *record) { r.NetworksBefore = nil })
}
