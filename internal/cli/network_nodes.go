package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// onNodesFlag makes a command look at the nodes of the node files too.
const onNodesFlag = "on-nodes"

func addOnNodesFlag(cmd *cobra.Command, onNodes *bool) {
	cmd.Flags().BoolVar(onNodes, onNodesFlag, false,
		"also check over SSH whether HNS has the network on the nodes of the node files")
}

// networkOnNodes looks for the pod network in HNS of each chosen node of the files. limit bounds
// the wait for the network; 0: do not wait.
func (a *app) networkOnNodes(ctx context.Context, files networkFiles, network string, limit time.Duration) (
	[]podnetwork.NodeReport, error) {
	s, err := files.session(a)
	if err != nil {
		return nil, err
	}
	name := cni.Network(network).HNSName()
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, _ config.Document,
		r ui.Reporter) (hns.Network, error) {
		if limit == 0 {
			return hns.FindNetwork(ctx, n.Compute, name)
		}
		r.Step("waiting for the HNS network %s", name)
		return hns.AwaitNetwork(ctx, n.Compute, name, limit, func(state string) { r.Debug("%s", state) })
	})
	reports := []podnetwork.NodeReport{}
	for _, result := range results {
		reports = append(reports, podnetwork.NodeReport{
			Outcome: fleet.NewOutcome(result.Name(), fleet.OK, result.Err), HNSNetwork: result.Value.Name,
			Type: result.Value.Type})
	}
	return reports, fleet.Failures(results)
}
