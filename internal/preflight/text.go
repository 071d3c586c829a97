package preflight

import (
	"fmt"
	"io"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// WriteText writes the report for people: a line on the whole, then each problem
// with what was seen and what to do about it.
func (r Report) WriteText(w io.Writer, name string) error {
	head := name
	if r.Windows != "" {
		head += " (" + r.Windows + ")"
	}
	if _, err := fmt.Fprintf(w, "%s: %s\n", head, r.Summary()); err != nil {
		return err
	}
	var rows [][]string
	for _, p := range r.Problems {
		what := p.What
		if p.Ignored {
			what += " (ignored)"
		}
		rows = append(rows, []string{p.Severity.mark() + " " + p.Check, what})
		if p.Evidence != "" {
			rows = append(rows, []string{"", "seen: " + p.Evidence})
		}
		if p.Remedy != "" {
			rows = append(rows, []string{"", "→ " + p.Remedy})
		}
	}
	return ui.Lines(w, rows)
}

func (s Severity) mark() string {
	switch s {
	case Error:
		return "✗"
	case Warning:
		return "!"
	}
	return "·"
}

// Summary is the report in a few words: 2 errors, 1 warning in 27 checks.
func (r Report) Summary() string {
	var counts []string
	for _, s := range []Severity{Error, Warning} {
		switch n := r.Count(s); {
		case n == 1:
			counts = append(counts, "1 "+string(s))
		case n > 1:
			counts = append(counts, fmt.Sprintf("%d %ss", n, s))
		}
	}
	summary := "nothing stands in the way"
	if len(counts) > 0 {
		summary = strings.Join(counts, ", ")
	}
	summary += fmt.Sprintf(" in %d checks", len(r.Checks))
	if n := len(r.Skipped); n > 0 {
		summary += fmt.Sprintf(", %d not made", n)
	}
	return summary
}
