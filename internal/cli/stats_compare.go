package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/stats"
	"github.com/swdt-dev/swdt/internal/stats/report"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) statsCompareCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compare RECORDING RECORDING [flags]",
		Short: "Two recordings side by side",
		Long: `For each source of two recordings: how reported and computed cores compare, the
verdicts a minute, and how long an answer took. REPORTED/COMPUTED leaves idle
containers out (less than 0.005 cores).`,
		Example: examples("stats compare before.swdt after.swdt", "", "stats compare before.swdt after.swdt -o json", "for scripts"),
		Args:    arguments(cobra.ExactArgs(2)),
		RunE:    func(_ *cobra.Command, args []string) error { return a.runStatsCompare(args) },
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
	return a.print(comparison{both}, func(p *ui.Page) error { return writeComparison(p, both) })
}

// comparison is the result of `swdt stats compare`.
type comparison struct {
	Recordings []report.Recorded `json:"recordings"`
}

func writeComparison(w io.Writer, both []report.Recorded) error {
	columns := [][]string{}
	header := []string{""}
	for _, r := range both {
		for _, s := range r.Sources {
			header = append(header, r.Name+" "+string(s.Source))
			columns = append(columns, comparisonColumn(r, s))
		}
	}
	labels := []string{"runtime", "minutes", "containers", "answers", "samples", "with a rate", "reported/computed median", "  5 % to 95 %", "  least to most",
		"latency median", "  95 %"}
	for _, v := range stats.Verdicts() {
		labels = append(labels, string(v)+" a minute")
	}
	var rows [][]string
	for i, label := range labels {
		row := []string{label}
		for _, column := range columns {
			row = append(row, column[i])
		}
		rows = append(rows, row)
	}
	return ui.Table(w, header, rows)
}

func comparisonColumn(r report.Recorded, s stats.SourceSummary) []string {
	runtime := ""
	if len(r.Meta.Nodes) > 0 {
		runtime = r.Meta.Nodes[0].Runtime
	}
	column := []string{runtime, fmt.Sprintf("%.1f", s.Seconds/60), fmt.Sprint(s.Containers), fmt.Sprint(s.Calls), fmt.Sprint(s.Samples), fmt.Sprint(s.Reported)}
	if s.Ratio.Count == 0 {
		column = append(column, "", "", "")
	} else {
		column = append(column, fmt.Sprintf("%.2f", s.Ratio.Median), fmt.Sprintf("%.2f to %.2f", s.Ratio.P5, s.Ratio.P95),
			fmt.Sprintf("%.2f to %.2f", s.Ratio.Min, s.Ratio.Max))
	}
	column = append(column, latency(s.LatencySeconds.Median), latency(s.LatencySeconds.P95))
	for _, v := range stats.Verdicts() {
		if s.Seconds > 0 {
			column = append(column, fmt.Sprintf("%.1f", s.PerMinute[v]))
		} else {
			column = append(column, "")
		}
	}
	return column
}
