package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/stats"
)

// findings are the verdicts that a check looks for.
type findings struct {
	wanted  []stats.Verdict
	first   map[stats.Verdict]stats.Row
	count   map[stats.Verdict]int
	samples int
	callers int
}

func newFindings(wanted []stats.Verdict) *findings {
	return &findings{wanted: wanted, first: map[stats.Verdict]stats.Row{}, count: map[stats.Verdict]int{}}
}

func (f *findings) add(r stats.Reading, rows []stats.Row) {
	f.samples += len(rows)
	f.callers = max(f.callers, r.Caller)
	for _, row := range rows {
		for _, v := range row.Verdicts {
			if !slices.Contains(f.wanted, v) {
				continue
			}
			if f.count[v] == 0 {
				f.first[v] = row
			}
			f.count[v]++
		}
	}
}

func (f *findings) any() bool { return len(f.count) > 0 }

// paragraph is what a person who was not there has to know.
func (f *findings) paragraph() string {
	var parts []string
	for _, rule := range stats.Rules() {
		if n := f.count[rule.Verdict]; n > 0 {
			parts = append(parts, f.sentence(rule, n))
		}
	}
	return strings.Join(parts, " ")
}

func (f *findings) sentence(rule stats.Rule, n int) string {
	row := f.first[rule.Verdict]
	var b strings.Builder
	fmt.Fprintf(&b, "%s: in %d of %d samples %s; first %s at %s, asked by caller %d of %d (%s)",
		rule.Verdict, n, f.samples, rule.Means, row.Key.Container.Path(), row.Point.Received.Format("15:04:05.000"),
		row.Key.Caller+1, f.callers+1, row.Key.Source)
	if row.Point.Reported != nil {
		fmt.Fprintf(&b, ": reported %.3f cores", stats.Cores(*row.Point.Reported))
	}
	if row.Computed != nil {
		fmt.Fprintf(&b, ", computed %.3f", *row.Computed)
	}
	fmt.Fprintf(&b, ". A known cause: %s", rule.Cause)
	if rule.Upstream != "" {
		fmt.Fprintf(&b, " (%s)", rule.Upstream)
	}
	b.WriteString(".")
	return b.String()
}
