package doctor

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/finding"
)

// WriteText writes the report for people: a line on the whole, each finding with
// what was seen and what to do about it, and what was not looked at.
func (r Report) WriteText(w io.Writer) error {
	var all []finding.Told
	for _, f := range r.Findings {
		all = append(all, finding.Told{Severity: f.Severity, By: f.Rule, What: f.What, Evidence: f.Evidence, Remedy: f.Remedy})
	}
	if err := finding.Write(w, r.Node, r.Windows, r.Summary(), all); err != nil {
		return err
	}
	for _, reason := range r.reasons() {
		if _, err := fmt.Fprintln(w, reason); err != nil {
			return err
		}
	}
	return nil
}

// reasons are why rules were not looked at, each once.
func (r Report) reasons() (all []string) {
	rules := map[string][]string{}
	var order []string
	for _, s := range r.Skipped {
		if rules[s.Why] == nil {
			order = append(order, s.Why)
		}
		rules[s.Why] = append(rules[s.Why], s.Rule)
	}
	for _, why := range order {
		all = append(all, "not looked at: "+strings.Join(rules[why], ", ")+": "+why)
	}
	return all
}

// Summary is the report in a few words: 2 errors, 1 warning in 57 rules, 12 not
// looked at.
func (r Report) Summary() string {
	summary := cmp.Or(finding.Counts(r.Count), "nothing wrong") + " in " + finding.Several(len(r.Rules), "rule")
	if n := len(r.Skipped); n > 0 {
		summary += fmt.Sprintf(", %d not looked at", n)
	}
	return summary
}
