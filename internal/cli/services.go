package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/services"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) servicesCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:     "services [NAME…]",
		Aliases: []string{"service", "svc"},
		Short:   "List the services of Windows, or show how some of them start",
		Long: `Lists the services of Windows on nodes, with their states and processes. A service
that has ended by itself is listed with its exit code.

With NAMEs it shows only these, with their start type, the services that they need,
their account and their command line.`,
		Example: examples(
			"services", "",
			"services kubelet containerd", "with their command lines",
			"services -o json", "for scripts",
		),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: notTwice(a.completeComponents),
		RunE:              func(cmd *cobra.Command, names []string) error { return a.runServices(cmd.Context(), names) },
	})
}

func (a *app) runServices(ctx context.Context, names []string) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, _ config.Document, _ ui.Reporter) (services.List,
		error) {
		return services.Look(ctx, n, names)
	})
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	report := services.NewReport(results, len(names) > 0)
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	return failed
}
