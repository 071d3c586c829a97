package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) restartCommand() *cobra.Command {
	return canDryRun(forNodes(&cobra.Command{
		Use:   "restart NAME…",
		Short: "Restart services of nodes in order, and wait until they are healthy",
		Long: `Restarts Windows services, in one transaction like that of a push: dependents stop
first, each until its process has ended. Each service must be healthy before those
that need it start: kubelet answers on its healthz endpoint, containerd on its pipe,
others keep running for a second. If one does not come back, the error has its exit
code and the last lines of its log, and the exit code is 4.

NAME is a component of the node file or a service of the node. Services that are
stopped are started first, in the same order, each until Windows reports that it
runs; if one does not start, nothing is restarted, and the exit code is 1. No file
changes.`,
		Example: examples(
			"restart containerd", "kubelet, which needs it, too",
			"restart kubelet --to win-1", "without a node file",
			"restart kubelet containerd --dry-run", "",
		),
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: notTwice(a.completeComponents),
		RunE: func(cmd *cobra.Command, names []string) error {
			return a.runRestart(cmd.Context(), names)
		},
	}))
}

func (a *app) runRestart(ctx context.Context, names []string) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	documents, open := withServices(s.documents, names)
	s.documents = documents
	options := push.Options{DryRun: a.global.dryRun}
	return a.printDeploy(onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (push.NodeResult, error) {
		doc, err := push.Place(ctx, n, doc, open[doc.Node.Metadata.Name], r)
		if err != nil {
			return push.NodeResult{}, err
		}
		return push.Restart(ctx, n, doc, names, options, r)
	}))
}
