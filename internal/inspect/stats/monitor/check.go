package monitor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

// Check counts the samples that got one of the wanted verdicts. For each verdict, it keeps
// the first such sample.
type Check struct {
	wanted  []stats.Verdict
	first   map[stats.Verdict]stats.Row
	count   map[stats.Verdict]int
	samples int
	callers int
	checked stats.Checked // the verdicts that at least one sample could have got
}

// NewCheck returns a check for these verdicts.
func NewCheck(wanted []stats.Verdict) *Check {
	return &Check{wanted: wanted, first: map[stats.Verdict]stats.Row{}, count: map[stats.Verdict]int{}}
}

func (f *Check) add(r stats.Reading, rows []stats.Row) {
	f.samples += len(rows)
	f.callers = max(f.callers, r.Caller)
	for _, row := range rows {
		f.checked |= row.Checked
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

func (f *Check) any() bool { return len(f.count) > 0 }

// unchecked returns the wanted verdicts that no sample could have got.
func (f *Check) unchecked() []stats.Verdict {
	checked := f.checked.Verdicts()
	return slices.DeleteFunc(slices.Clone(f.wanted),
		func(v stats.Verdict) bool { return slices.Contains(checked, v) || f.count[v] > 0 })
}

// FailedError reports that a check found a verdict that it searched for, or that it could check no
// sample for one of these verdicts.
type FailedError struct{ Text string }

func (e *FailedError) Error() string { return e.Text }

// Result returns nil if the check could have found each wanted verdict and has found none of them.
// If not, it returns a *FailedError.
func (f *Check) Result() error {
	var parts []string
	if f.any() {
		parts = append(parts, f.paragraph())
	}
	switch unchecked := f.unchecked(); {
	case len(f.wanted) == 0:
	case f.samples == 0:
		parts = append(parts,
			"nothing was checked: no container was seen; check that pods run on the node, and that --namespace and "+
				"--pod-pattern select them")
	case len(unchecked) > 0:
		parts = append(parts, "not checked: "+notChecked(unchecked))
	}
	if len(parts) == 0 {
		return nil
	}
	return &FailedError{strings.Join(parts, "\n")}
}

// notChecked returns a text that lists the verdicts that were not checked. For each verdict, the
// text describes the samples that the verdict's rule needs from one container.
func notChecked(verdicts []stats.Verdict) string {
	var parts []string
	for _, v := range verdicts {
		rule, _ := stats.RuleOf(v)
		needs := "two samples in a row with the numbers that the rule compares"
		if rule.Needs > 0 {
			needs = fmt.Sprintf("%s of samples with a rate and a counter", rule.Needs)
		}
		parts = append(parts, fmt.Sprintf("%s, which needs %s of one container", v, needs))
	}
	return strings.Join(parts, "; ")
}

// paragraph returns a description of the findings for a person who did not see the watch.
func (f *Check) paragraph() string {
	var parts []string
	for _, rule := range stats.Rules() {
		if n := f.count[rule.Verdict]; n > 0 {
			parts = append(parts, f.sentence(rule, n))
		}
	}
	return strings.Join(parts, " ")
}

func (f *Check) sentence(rule stats.Rule, n int) string {
	row := f.first[rule.Verdict]
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d samples: %s; first seen for %s at %s, in the answer to caller %d of %d (%s)",
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
