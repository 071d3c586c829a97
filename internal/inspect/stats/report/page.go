package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/ui/htmlpage"
)

//go:embed report.html
var page string

// Page writes the page of the first recording. If the second recording is not nil, the page shows
// the second recording beside the first.
func Page(w io.Writer, a Recorded, b *Recorded) error {
	return htmlpage.Write(w, page, template.FuncMap{
		"counts": counts, "ms": milliseconds, "ratio": ratio,
		"perMinute": func(verdicts map[stats.Verdict]float64) string { return stats.Counts(verdicts, "%.1f") },
	}, view(a, b))
}

type pageView struct {
	Recordings []Recorded
	Containers []Listed
	Charts     []drawn
	Left       int // the number of charts that were left out
	Rules      []stats.Rule
	Data       [][]hover
}

func view(a Recorded, b *Recorded) pageView {
	v := pageView{Recordings: []Recorded{a}, Rules: stats.Rules()}
	if b != nil {
		v.Recordings = append(v.Recordings, *b)
	}
	for _, r := range v.Recordings {
		prefix := ""
		if b != nil {
			prefix = r.Name + ": "
		}
		drawing := worthDrawing(r.charts)
		v.Left += len(r.charts) - len(drawing)
		for _, c := range r.charts {
			listed := c.listed()
			listed.Title = prefix + listed.Title
			v.Containers = append(v.Containers, listed)
		}
		for _, c := range drawing {
			d := c.draw()
			d.Title = prefix + d.Title
			v.Charts = append(v.Charts, d)
			v.Data = append(v.Data, d.Points)
		}
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
