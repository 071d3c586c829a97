package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/logs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) logsListCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:   "list [flags]",
		Short: "List the logs of nodes, with size and last write",
		Long: `Lists the logs of the known sources and of the node's pods: those that exist,
and those that a service is configured to write and has not written yet.`,
		Example: examples("logs list", "", "logs list -o json", "for scripts"),
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runLogsList(cmd.Context()) },
	})
}

func (a *app) runLogsList(ctx context.Context) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, _ config.Document, _ ui.Reporter) ([]logs.Found,
		error) {
		return logs.List(ctx, n)
	})
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	report := logs.NewReport(results)
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	return failed
}
