package report

import (
	"fmt"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Comparison is the result of `swdt stats compare`.
type Comparison struct {
	Recordings []Recorded `json:"recordings"`
}

// Written is the result of `swdt stats report`.
type Written struct {
	File string `json:"file"`
}

// WriteText writes the path of the file.
func (w Written) WriteText(p *ui.Page) error {
	_, err := fmt.Fprintln(p, w.File)
	return err
}

// WriteText writes a column for each source of each recording.
func (c Comparison) WriteText(w *ui.Page) error {
	columns := [][]string{}
	header := []string{""}
	for _, r := range c.Recordings {
		for _, s := range r.Sources {
			header = append(header, r.Name+" "+string(s.Source))
			columns = append(columns, comparisonColumn(r, s))
		}
	}
	labels := []string{"runtime", "minutes", "containers", "answers", "samples", "with a rate",
		"reported/computed median", "  5 % to 95 %", "  least to most",
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

func comparisonColumn(r Recorded, s stats.SourceSummary) []string {
	runtime := ""
	if len(r.Meta.Nodes) > 0 {
		runtime = r.Meta.Nodes[0].Runtime
	}
	column := []string{runtime, fmt.Sprintf("%.1f", s.Seconds/60), fmt.Sprint(s.Containers), fmt.Sprint(s.Calls),
		fmt.Sprint(s.Samples), fmt.Sprint(s.Reported)}
	if s.Ratio.Count == 0 {
		column = append(column, "", "", "")
	} else {
		column = append(column, fmt.Sprintf("%.2f", s.Ratio.Median),
			fmt.Sprintf("%.2f to %.2f", s.Ratio.P5, s.Ratio.P95),
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

func latency(seconds float64) string { return ui.Seconds(time.Duration(seconds * 1e9)) }
