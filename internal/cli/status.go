package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) statusCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:        "status [flags]",
		SuggestFor: []string{"get", "info", "describe", "state"},
		Short:      "Show what runs on nodes and what differs from the node file",
		Long: `Shows the Windows of each node and, for each component of the node file, its
version, hash, service and process, and whether the source of the node file has
another binary now. The node's containerd, kubelet and kube-proxy are listed
without a provisioner too: containerd and kubelet compared with the versions
that the node file has for a join, kube-proxy without a comparison. An
unfinished transaction is listed as well. The command changes nothing.`,
		Example: examples(
			"status", "",
			"status -o json", "for scripts",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runStatus(cmd.Context()) },
	})
}

func (a *app) runStatus(ctx context.Context) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	options := push.StatusOptions{Sources: source.NewSet(source.Options{}), AgentHash: s.options.Agent.Hash}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (push.NodeStatus, error) {
		return push.Status(ctx, n, doc, options, r)
	})
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed // the error already contains everything that the result would contain
	}
	for _, result := range results {
		for i := range result.Value.Components {
			c := &result.Value.Components[i]
			c.Message = a.remedies(result.Name(), c.Message)
		}
	}
	report := push.NewStatusReport(results)
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	return failed
}
