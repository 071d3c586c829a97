package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) historyCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:   "history [NAME…]",
		Short: "List the pushes of nodes: when, who, what, and which files are kept",
		Long: `Lists the pushes, rollbacks and restarts that a node remembers, the last 200,
oldest first: when each began, who began it, on which machine and with which
command, how it ended, and for each component the versions and hashes before and
after. With NAMEs it lists only these components. It changes nothing.

KEPT says where the file is that a push brought: "present" is the file at the
destination now, "on the node" the previous one, which the node keeps, and "in
the cache" one that this machine has pushed. "swdt rollback --to-push N" returns
to a push whose files are kept.

-o wide adds the transaction, whose ID was the name of its journal on the node,
and the destination.`,
		Example: examples(
			"history", "",
			"history kubelet --to win-1", "one component, without a node file",
			"history -o json", "for scripts",
		),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: notTwice(a.completeComponents),
		RunE:              func(cmd *cobra.Command, names []string) error { return a.runHistory(cmd.Context(), names) },
	})
}

func (a *app) runHistory(ctx context.Context, names []string) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	keeper := s.keeper()
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, _ ui.Reporter) ([]push.PastPush,
		error) {
		return push.History(ctx, n, doc, names, keeper)
	})
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	report := push.NewHistoryReport(results, names)
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	return failed
}

// keeper returns this machine's store of pushed files; nil without a cache folder.
func (s *session) keeper() push.Keeper {
	if depot := s.depot(); depot != nil {
		return depot
	}
	return nil
}
