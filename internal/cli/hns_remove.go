package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/hnsnetwork"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) hnsRemoveCommand() *cobra.Command {
	var yes bool
	cmd := canDryRun(forNodes(&cobra.Command{
		Use: "remove [flags] NETWORK", Short: "Remove an HNS network with its endpoints and load balancers",
		Long: `Removes an HNS network of one node, with its endpoints and the load balancers
that use them. Pods on the network lose it. Windows gives the network's adapter
back to the machine, which interrupts connections for a moment: swdt reconnects.

Use it for a network that another cluster has left. "swdt reset" removes the
networks that pods got since "swdt join".

NETWORK is a name of "swdt hns networks", or the beginning of an ID.`,
		Example: examples("hns remove Calico", "", "hns remove flannel.4096 --yes", "in a script"),
		Args:    arguments(cobra.ExactArgs(1)), ValidArgsFunction: a.completeNetworks,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runHNSRemove(cmd.Context(), args[0], yes) },
	}))
	addYesFlag(cmd, &yes)
	return cmd
}

func (a *app) runHNSRemove(ctx context.Context, name string, yes bool) error {
	s, err := a.oneNode("a network is on one node")
	if err != nil {
		return err
	}
	if err := canConfirm(s.options.Prompt, yes || a.global.dryRun, "Remove the HNS network "+name+"?"); err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (hns.Removed,
		error) {
		found, err := hns.FindRemoval(ctx, n.Compute, doc.Node.Metadata.Name, name, a.global.dryRun)
		if err != nil || a.global.dryRun {
			return found, err
		}
		if err := confirm(ctx, s.options.Prompt, yes, "Remove "+found.String()+"?"); err != nil {
			return found, err
		}
		return found, hnsnetwork.Remove(ctx, n, r, found.Network())
	})
	removed, failed := results[0].Value, fleet.Failures(results)
	if failed != nil && a.inText() {
		return failed
	}
	if failed != nil {
		removed.Outcome = results[0].Outcome()
	}
	report := hns.RemoveReport{Nodes: []hns.Removed{removed}}
	return errors.Join(failed, a.print(report, report.WriteText))
}
