package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/owners"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) topCommand() *cobra.Command {
	var choice rowFlags
	cmd := forNodes(&cobra.Command{
		Use:   "top [flags]",
		Short: "Show the CPU and memory that pods and services use now",
		Long: `Measures for a second and shows what each node uses: its cores, its memory and the
free space of its system drive, and the cores and working sets of each pod and
service, with all their processes. The values are those of Windows; no metrics
server and no container runtime needs to answer. "swdt ps --watch" shows single
processes, and "swdt stats watch" compares with what the runtime reports.`,
		Example: examples(
			"top", "",
			"top --sort memory", "",
			"top -o json", "for scripts",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runTop(cmd.Context(), &choice) },
	})
	columns := owners.LoadColumns()
	cmd.Flags().StringVar(&choice.Sort, "sort", columns[0], "sort the table by this `column`: "+ui.Alternatives(columns))
	must(cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(columns, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (a *app) runTop(ctx context.Context, choice *rowFlags) error {
	if err := choice.complete(owners.LoadColumns()); err != nil {
		return err
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (owners.Load,
		error) {
		r.Step("measuring for a second")
		load, err := owners.LookAtLoad(ctx, n, doc.RuntimePipe())
		for _, gap := range load.Gaps {
			r.Warn("%s", gap)
		}
		return load, err
	})
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	report := owners.NewLoadReport(results, choice.Sort)
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	return failed
}
