package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/proof/scale"
)

func (a *app) scaleCommand() *cobra.Command {
	cmd := group("scale", "Measure how nodes program many Services", a.scaleRunCommand(), a.scaleReportCommand(),
		a.scaleCompareCommand())
	cmd.Long = `Measures how long Windows nodes need to program many Services, as SIG Windows did
for kube-proxy: until kube-proxy's metrics show that it has synchronized, and until
HNS of the node has the load balancer of each Service. It shows the CPU time and
memory of kube-proxy too, and compares two runs, such as before and after a push of
another kube-proxy.`
	cmd.Example = examples(
		"scale run --dry-run", "the objects that it would make",
		"scale run --services 200 --endpoints 500", "",
		"scale compare before after", "two folders of results",
	)
	return cmd
}

func (a *app) scaleReportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report RESULTS",
		Short: "Print the report of a finished scale run",
		Long: `Prints the report that "scale run" has written. RESULTS is the folder, or the file
results.json in it. The page with the curves is report.html in the folder. The exit
code is that of the run. No cluster and no node is contacted.`,
		Example: examples("scale report scale-20261123-180000", "",
			"scale report before -o wide", "with kube-proxy's synchronizations"),
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: completeFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := scale.LoadReport(args[0])
			if err != nil {
				return err
			}
			return errors.Join(a.print(report, report.WriteText), scaleFailure(cmd.Context(), report.Failure()))
		},
	}
}

func (a *app) scaleCompareCommand() *cobra.Command {
	tolerance := float64(scale.DefaultTolerance)
	cmd := &cobra.Command{
		Use:   "compare BEFORE AFTER [flags]",
		Short: "Compare the results of two scale runs",
		Long: `Compares two runs of the same load: the times, CPU time and memory of each phase on
each node. Nodes are matched by name; if each run has only one, these are compared.
A difference within --tolerance-percent, or within the time between two looks at HNS, is
none. The exit code is 5 if a value is worse in the second run.`,
		Example: examples("scale compare before after", "", "scale compare before after -o wide", "also what is the same",
			"scale compare before after --tolerance-percent 50", ""),
		Args:              arguments(cobra.ExactArgs(2)),
		ValidArgsFunction: completeFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.runScaleCompare(args[0], args[1], tolerance)
		},
	}
	cmd.Flags().Float64Var(&tolerance, "tolerance-percent", tolerance, "`percent` by which a value may grow")
	return cmd
}

func (a *app) runScaleCompare(first, second string, tolerance float64) error {
	if !(tolerance >= 0 && tolerance <= 1000) { // also if it is no number
		return usagef("--tolerance-percent %g: use a number from 0 to 1000", tolerance)
	}
	before, err := scale.LoadReport(first)
	if err != nil {
		return err
	}
	after, err := scale.LoadReport(second)
	if err != nil {
		return err
	}
	c, err := scale.Compare(before, after, tolerance)
	if err != nil {
		return err
	}
	if err := a.print(c, c.WriteText); err != nil {
		return err
	}
	if c.Worse() {
		return &exitError{code: exitFinding}
	}
	return nil
}

// scaleFailure adds the exit code to the error of a run. The table already shows the failures.
func scaleFailure(ctx context.Context, err error) error {
	var failed *scale.FailedError
	if errors.As(err, &failed) {
		return &exitError{code: exitFinding}
	}
	return unreachable(explain(ctx, err))
}
