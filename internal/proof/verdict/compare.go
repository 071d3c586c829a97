package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Change is how the verdict on a spec differs between two reports.
type Change string

// The changes.
const (
	Broken  Change = "broken"  // it passed, and now it does not
	Fixed   Change = "fixed"   // it did not pass, and now it does
	Other   Change = "other"   // another verdict, but neither passes
	Same    Change = "same"    // the same verdict
	Lost    Change = "notRun"  // it passed, and the second run ended before it
	Added   Change = "added"   // only the second report has it
	Removed Change = "removed" // only the first report has it
)

// changes returns all changes, the most important first.
func changes() []Change { return []Change{Broken, Lost, Removed, Other, Added, Fixed, Same} }

// Comparison is the difference between two reports.
type Comparison struct {
	Before Compared         `json:"before"`
	After  Compared         `json:"after"`
	Counts map[Change]int   `json:"counts"`
	Specs  []SpecComparison `json:"specs"` // the most important change first
}

// Compared names one of the reports.
type Compared struct {
	Folder     string  `json:"folder"`
	Result     string  `json:"result"`
	Kubernetes string  `json:"kubernetes"`
	Binary     string  `json:"binary"` // the version of e2e.test
	Runs       int     `json:"runs"`
	Summary    Summary `json:"summary"`
}

// SpecComparison is one spec in both reports. A verdict is "" if the report lacks the spec.
type SpecComparison struct {
	Name   string  `json:"name"`
	Change Change  `json:"change"`
	Before Verdict `json:"before"`
	After  Verdict `json:"after"`
	// SecondsBefore and SecondsAfter are the medians of the durations.
	SecondsBefore float64 `json:"secondsBefore"`
	SecondsAfter  float64 `json:"secondsAfter"`
	Message       string  `json:"message"` // of the second report
}

// Compare returns the difference between two reports, of which a is the earlier one.
func Compare(a, b Report) Comparison {
	c := Comparison{Before: compared(a), After: compared(b), Counts: map[Change]int{}, Specs: []SpecComparison{}}
	byName := map[string]*SpecComparison{}
	for _, s := range a.Specs {
		byName[s.Name] = &SpecComparison{Name: s.Name, Before: s.Verdict, SecondsBefore: s.Seconds.Median}
	}
	for _, s := range b.Specs {
		if byName[s.Name] == nil {
			byName[s.Name] = &SpecComparison{Name: s.Name}
		}
		both := byName[s.Name]
		both.After, both.SecondsAfter, both.Message = s.Verdict, s.Seconds.Median, firstLine(s.Message)
	}
	for _, s := range byName {
		if s.After == "" && b.unreached(s.Name) {
			s.After = NotRun
		}
		if s.Before == "" && a.unreached(s.Name) {
			s.Before = NotRun
		}
		s.Change = s.change()
		c.Counts[s.Change]++
		c.Specs = append(c.Specs, *s)
	}
	slices.SortFunc(c.Specs, func(x, y SpecComparison) int {
		return cmp.Or(cmp.Compare(slices.Index(changes(), x.Change), slices.Index(changes(), y.Change)),
			cmp.Compare(x.Name, y.Name))
	})
	return c
}

func compared(r Report) Compared {
	return Compared{Folder: r.Folder, Result: r.Result, Kubernetes: r.Kubernetes, Binary: r.Binary.Version, Runs: r.Runs,
		Summary: r.Summary}
}

func (s SpecComparison) change() Change {
	switch {
	case s.Before == "":
		return Added
	case s.After == "":
		return Removed
	case s.Before == s.After:
		return Same
	case s.Before == Passed && s.After == NotRun:
		return Lost
	case s.Before == Passed:
		return Broken
	case s.After == Passed:
		return Fixed
	}
	return Other
}

// Worse reports whether a spec that passed before does not pass any more.
func (c Comparison) Worse() bool {
	return slices.ContainsFunc(c.Specs, func(s SpecComparison) bool {
		return s.Before == Passed && s.After != Passed
	})
}

// ComparisonColumns returns the columns of the table of a Comparison. If wide is true, they are those of -o wide.
func ComparisonColumns(wide bool) []string {
	header := []string{"CHANGE", "BEFORE", "AFTER", "TIME", "NOW", "SPEC"}
	if wide {
		header = append(header, "MESSAGE")
	}
	return header
}

// WriteText writes a line for each spec whose verdict differs, and then the numbers. With the format wide,
// it writes a line for each spec, with its message.
func (c Comparison) WriteText(p *ui.Page) error {
	rows := [][]string{}
	for _, s := range c.Specs {
		if s.Change == Same && !p.Wide {
			continue
		}
		row := []string{s.words(), string(s.Before), string(s.After), writtenSeconds(s.SecondsBefore), writtenSeconds(s.SecondsAfter),
			s.Name}
		if p.Wide {
			row = append(row, s.Message)
		}
		rows = append(rows, row)
	}
	err := ui.TableOr(p, "no verdict differs", ComparisonColumns(p.Wide), rows)
	if err == nil {
		_, err = fmt.Fprintf(p, "%d broken, %d fixed, %d the same; before: %s; after: %s\n", c.Counts[Broken],
			c.Counts[Fixed], c.Counts[Same], c.Before.Summary, c.After.Summary)
	}
	return err
}

func writtenSeconds(seconds float64) string { return duration(Spread{Min: seconds, Max: seconds}) }

func (s SpecComparison) words() string {
	switch s.Change {
	case Broken, Lost, Removed:
		return ui.Bad(string(s.Change))
	case Fixed:
		return ui.Good(string(s.Change))
	}
	return string(s.Change)
}
