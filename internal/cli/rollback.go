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
	var number int
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:   "rollback NAME…",
		Short: "Put the previous binaries back, or those of an earlier push",
		Long: `Puts back the binaries that the last push replaced, in a transaction like that
of a push. It keeps the present binaries, so that a second rollback undoes the
first.

With --to-push it puts the files of that push of "swdt history" in place again:
all of them, with the configuration that went with a binary, or those of the
NAMEs. A file that the node keeps is taken from there; one that only the cache of
this machine has is sent again. The hash of each is compared with that of the
history. If one of them is kept nowhere, nothing is changed, and the error names
what is kept. A configuration is kept on the node alone, for one push. The arguments of services stay as they are.`,
		Example: examples(
			"rollback kubelet", "",
			"rollback kubelet containerd", "both, in one transaction",
			"rollback --to-push 3", "to what push 3 of the node brought",
		),
		ValidArgsFunction: a.completeComponents,
		RunE: func(cmd *cobra.Command,
			names []string) error {
			if cmd.Flags().Changed("to-push") {
				return a.runRollbackTo(cmd.Context(), number, names)
			}
			return a.runRollback(cmd.Context(), names)
		},
	}))
	cmd.Args = func(cmd *cobra.Command, names []string) error {
		if cmd.Flags().Changed("to-push") {
			return nil
		}
		return arguments(cobra.MinimumNArgs(1))(cmd, names)
	}
	cmd.Flags().IntVar(&number, "to-push", 0, "put the files of this `push` of the node's history in place")
	must(cmd.RegisterFlagCompletionFunc("to-push", cobra.NoFileCompletions))
	return cmd
}

// runRollbackTo puts the files of a push of the history of one node in place.
func (a *app) runRollbackTo(ctx context.Context, number int, names []string) error {
	if number < 1 {
		return usagef("--to-push %d: name a push of `swdt history`, such as 3", number)
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	if len(s.documents) != 1 {
		return usagef("--to-push names a push of one node, and there are %d: choose one with %s", len(s.documents),
			nodeFlagOf(a.invoked))
	}
	options := push.Options{DryRun: a.global.dryRun, Depot: s.depot()}
	to := push.Target{Number: number, Names: names, Keeper: s.keeper()}
	return a.printDeploy(onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (push.NodeResult, error) {
		return push.RollbackTo(ctx, n, doc, to, options, r)
	}))
}

func (a *app) runRollback(ctx context.Context, names []string) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	documents, open := withComponents(s.documents, names)
	s.documents = documents
	if err := a.componentsExist(s.documents, names); err != nil {
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
