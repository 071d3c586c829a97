package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) rollbackCommand() *cobra.Command {
	return canDryRun(forNodes(&cobra.Command{
		Use:   "rollback NAME…",
		Short: "Put the previous binaries back",
		Long: `Puts back the binaries that the last push replaced, in a transaction like that
of a push. It keeps the present binaries, so that a second rollback undoes the
first.`,
		Example: examples(
			"rollback kubelet", "",
			"rollback kubelet containerd", "both, in one transaction",
		),
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeComponents,
		RunE: func(cmd *cobra.Command,
			names []string) error {
			return a.runRollback(cmd.Context(), names)
		},
	}))
}

func (a *app) runRollback(ctx context.Context, names []string) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	documents, open := withComponents(s.documents, names)
	s.documents = documents
	if err := componentsExist(s.documents, names); err != nil {
		return err
	}
	options := push.Options{DryRun: a.global.dryRun}
	return a.printDeploy(onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (push.NodeResult, error) {
		doc, err := push.Place(ctx, n, doc, open[doc.Node.Metadata.Name], r)
		if err != nil {
			return push.NodeResult{}, err
		}
		return push.Rollback(ctx, n, doc, names, options, r)
	}))
}
