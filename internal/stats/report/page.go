package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/swdt-dev/swdt/internal/stats"
)

//go:embed report.html
var page string

// Page writes the page of a recording, and of another beside it (nil: none).
func Page(w io.Writer, a Recorded, b *Recorded) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"counts": counts, "ms": milliseconds, "ratio": ratio,
		"perMinute": func(verdicts map[stats.Verdict]float64) string { return stats.Counts(verdicts, "%.1f") },
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("read the report's template: %w", err)
	}
	if err := t.Execute(w, view(a, b)); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

type pageView struct {
	Recordings []Recorded
	Charts     []drawn
	Left       int // charts that are not there
	Rules      []stats.Rule
	Data       [][]hover
}

func view(a Recorded, b *Recorded) pageView {
	v := pageView{Recordings: []Recorded{a}, Rules: stats.Rules(), Left: max(0, len(a.charts)-mostCharts)}
	charts := a.charts[:min(len(a.charts), mostCharts)]
	if b != nil {
		v.Recordings = append(v.Recordings, *b)
		charts = append(charts[:len(charts):len(charts)], b.charts[:min(len(b.charts), mostCharts)]...)
	}
	for i, c := range charts {
		d := c.draw()
		if b != nil {
			name := a.Name
			if i >= min(len(a.charts), mostCharts) {
				name = b.Name
			}
			d.Title = name + ": " + d.Title
		}
		v.Charts = append(v.Charts, d)
		v.Data = append(v.Data, d.Points)
	}
	return v
}

func counts(verdicts map[stats.Verdict]int) string { return stats.Counts(verdicts, "%d") }

func milliseconds(seconds float64) string { return fmt.Sprintf("%.1f ms", 1000*seconds) }

func ratio(d stats.Distribution) string {
	if d.Count == 0 {
		return "nothing to compare"
	}
	return fmt.Sprintf("%.2f; 90 %% of them %.2f to %.2f; all %.2f to %.2f", d.Median, d.P5, d.P95, d.Min, d.Max)
}
