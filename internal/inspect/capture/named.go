package capture

import (
	"context"
	"net/netip"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Named has the pods and Services, as NAMESPACE/NAME, whose packets are captured. The pods and
// Services may be on any node, and their packets are captured on all selected nodes.
type Named struct{ Pods, Services []string }

// Found has the information of one node about the pods and Services that a Named lists.
type Found struct {
	pods  []hns.Pod
	state hns.State
}

// Look asks a node for its pods if pods are named, and for its HNS objects if Services are
// named. It ignores an error of the container runtime if the cluster answered, since the
// cluster knows all pods.
func (w Named) Look(ctx context.Context, n *node.Node, doc config.Document, cluster hns.Known,
	r ui.Reporter) (found Found, err error) {
	if len(w.Services) > 0 {
		if found.state, err = hns.Read(ctx, n.Compute); err != nil {
			r.Warn("endpoints of Services are not captured: %v", err)
		}
	}
	if len(w.Pods) == 0 {
		return found, nil
	}
	found.pods, err = hns.PodsOf(ctx, n, doc.RuntimePipe(), r)
	if err != nil && cluster.Cluster {
		r.Debug("%v", err)
		err = nil
	}
	return found, err
}

// Addresses returns the addresses of the pods and Services.
func (w Named) Addresses(known hns.Known, found []Found) ([]netip.Prefix, error) {
	var states []hns.State
	for _, of := range found {
		known.Here = append(known.Here, of.pods...)
		states = append(states, of.state)
	}
	pods, err := PodAddresses(known, w.Pods)
	if err != nil {
		return nil, err
	}
	services, err := ServiceAddresses(known, states, w.Services)
	return append(pods, services...), err
}
