package preflight

import (
	"cmp"
	"fmt"
	"io"

	"github.com/swdt-dev/swdt/internal/finding"
)

// WriteText writes the report for people: a line on the whole, then each problem
// with what was seen and what to do about it.
func (r Report) WriteText(w io.Writer, name string) error {
	var all []finding.Told
	for _, p := range r.Problems {
		what := p.What
		if p.Ignored {
			what += " (ignored)"
		}
		all = append(all, finding.Told{Severity: p.Severity, By: p.Check, What: what, Evidence: p.Evidence, Remedy: p.Remedy})
	}
	return finding.Write(w, name, r.Windows, r.Summary(), all)
}

// Summary is the report in a few words: 2 errors, 1 warning in 27 checks.
func (r Report) Summary() string {
	summary := cmp.Or(finding.Counts(r.Count), "nothing stands in the way") + fmt.Sprintf(" in %d checks", len(r.Checks))
	if n := len(r.Skipped); n > 0 {
		summary += fmt.Sprintf(", %d not made", n)
	}
	return summary
}
