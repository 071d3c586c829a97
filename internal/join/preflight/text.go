package preflight

import (
	"cmp"
	"fmt"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// WriteText writes the report for people: a summary line, then each problem with its
// evidence and remedy.
func (r Report) WriteText(page *ui.Page, name string) error {
	var all []finding.Entry
	for _, p := range r.Problems {
		all = append(all, p.Entry())
	}
	return finding.Write(page, name, r.Windows, r.Summary(), all)
}

// Summary returns the report in a few words, such as "2 errors, 1 warning in 27 checks".
func (r Report) Summary() string {
	summary := cmp.Or(finding.Counts(r.Problems), "no problems") + fmt.Sprintf(" in %d checks", len(r.Checks))
	if n := len(r.Skipped); n > 0 {
		summary += fmt.Sprintf(", %d not made", n)
	}
	return summary
}
