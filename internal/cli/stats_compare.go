package cli

import (
	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/inspect/stats/report"
)

func (a *app) statsCompareCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compare RECORDING RECORDING [flags]",
		Short: "Compare two recordings",
		Long: `Compares two recordings, source by source: reported with computed cores, the
verdicts a minute, and the time that an answer took. REPORTED/COMPUTED leaves
idle containers out (less than 0.005 cores).`,
		Example: examples("stats compare before.swdt after.swdt", "", "stats compare before.swdt after.swdt -o json",
			"for scripts"),
		Args: arguments(cobra.ExactArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error { return a.runStatsCompare(args) },
	}
	cmd.ValidArgsFunction = completeFiles
	return cmd
}

func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

func (a *app) runStatsCompare(paths []string) error {
	var both []report.Recorded
	for _, path := range paths {
		recorded, err := report.Load(path)
		if err != nil {
			return err
		}
		both = append(both, recorded)
	}
	comparison := report.Comparison{Recordings: both}
	return a.print(comparison, comparison.WriteText)
}
