package verdict

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/proof/evidence"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Results of a report.
const (
	AllPassed     = "passed"  // at least one spec passed, and none failed
	SomeFailed    = "failed"  // a spec failed or is flaky
	NothingProved = "skipped" // all specs skipped themselves
	HarnessFailed = "error"   // the run itself failed, or did not reach all specs
)

// Report is the result of swdt e2e.
type Report struct {
	Result     string            `json:"result"`     // passed, failed, skipped or error
	Error      string            `json:"error"`      // why the run itself failed; "" if it did not
	Cluster    string            `json:"cluster"`    // the API server's URL
	Kubernetes string            `json:"kubernetes"` // the API server's version
	Binary     suite.Binary      `json:"binary"`
	Set        string            `json:"set"` // the named set of --suite; "" if none
	Selection  suite.Selection   `json:"selection"`
	Total      int               `json:"total"` // the number of all specs of the program
	Runs       int               `json:"runs"`  // the number of runs that were begun
	Begin      time.Time         `json:"begin"`
	Seconds    float64           `json:"seconds"`
	Folder     string            `json:"folder"` // the folder with the results; "" if nothing was run
	Findings   []finding.Problem `json:"findings"`
	// Leftovers are the namespaces that were removed: those of this run and those of killed runs.
	Leftovers []string `json:"leftovers"`
	Summary   Summary  `json:"summary"`
	Specs     []Spec   `json:"specs"` // the worst first

	missed map[string]bool // specs that the run of a JUnit file did not reach
	cut    bool            // the JUnit file ends early
}

// Summary are numbers of specs.
type Summary struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Flaky   int `json:"flaky"`
	Skipped int `json:"skipped"`
	NotRun  int `json:"notRun"`
}

// Judged returns the report with the verdicts of these runs. err is the failure of the run itself, or
// nil.
func (r Report) Judged(runs []suite.Report, err error) Report {
	r.Runs, r.Specs, r.Summary = len(runs), Judge(runs), Summary{}
	for _, s := range r.Specs {
		switch s.Verdict {
		case Passed:
			r.Summary.Passed++
		case Failed:
			r.Summary.Failed++
		case Flaky:
			r.Summary.Flaky++
		case Skipped:
			r.Summary.Skipped++
		case NotRun:
			r.Summary.NotRun++
		}
	}
	if err != nil {
		r.Error = suite.Shortened(err.Error(), 8<<10)
	}
	r.Result = r.Summary.result(err)
	return r
}

// AddEvidence adds the bundles of one run, by the name of the spec.
func (r *Report) AddEvidence(bundles map[string]evidence.Bundle) {
	for i := range r.Specs {
		if bundle, ok := bundles[r.Specs[i].Name]; ok {
			r.Specs[i].Evidence = append(r.Specs[i].Evidence, bundle)
		}
	}
}

func (s Summary) result(err error) string {
	switch {
	case err != nil || s.NotRun > 0:
		return HarnessFailed
	case s.Failed+s.Flaky > 0:
		return SomeFailed
	case s.Passed == 0:
		return NothingProved
	}
	return AllPassed
}

// Total returns the number of all specs.
func (s Summary) Total() int { return s.Passed + s.Failed + s.Flaky + s.Skipped + s.NotRun }

// String returns the numbers in words, such as "3 passed, 1 failed".
func (s Summary) String() string {
	text := fmt.Sprintf("%d passed, %d failed", s.Passed, s.Failed)
	if s.Flaky > 0 {
		text += fmt.Sprintf(", %d flaky", s.Flaky)
	}
	text += fmt.Sprintf(", %d skipped", s.Skipped)
	if s.NotRun > 0 {
		text += fmt.Sprintf(", %d not run", s.NotRun)
	}
	return text
}

// Names returns the specs that did not pass.
func (r Report) Names() []string {
	names := []string{}
	for _, s := range r.Specs {
		if s.Verdict != Passed {
			names = append(names, "spec/"+s.Name)
		}
	}
	return names
}

const (
	// shownPassed is the maximum number of passed specs that the text lists. If more have
	// passed, it lists none of them, except in the format wide.
	shownPassed = 20
	// shownMessage bounds a message in the text, in bytes.
	shownMessage = 200
)

// Columns returns the columns of the table of a Report. If wide is true, they are those of -o wide.
func Columns(wide bool) []string {
	header := []string{"VERDICT", "TIME", "SPEC", "MESSAGE"}
	if wide {
		header = append(header, "SOURCE")
	}
	return header
}

// WriteText writes a line for each spec that did not pass, for passed ones if they are few, and then the
// numbers.
func (r Report) WriteText(p *ui.Page) error {
	rows := [][]string{}
	for _, s := range r.Specs {
		if s.Verdict == Passed && r.Summary.Passed > shownPassed && !p.Wide {
			continue
		}
		row := []string{coloured(s), duration(s.Seconds), s.Name, firstLine(s.Message)}
		if p.Wide {
			row = append(row, fmt.Sprintf("%s:%d", s.File, s.Line))
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		if err := ui.Table(p, Columns(p.Wide), rows); err != nil {
			return err
		}
	}
	for _, line := range r.lines() {
		if _, err := fmt.Fprintln(p, line); err != nil {
			return err
		}
	}
	return nil
}

func (r Report) lines() []string {
	runs := ""
	if r.Runs > 1 {
		runs = fmt.Sprintf(" in %d runs", r.Runs)
	}
	lines := []string{fmt.Sprintf("%d of %d specs%s: %s in %s", r.Summary.Total(), r.Total, runs, r.Summary,
		ui.Seconds(time.Duration(r.Seconds*float64(time.Second))))}
	if r.Result == NothingProved {
		lines = append(lines, ui.Warn("all specs skipped themselves, so nothing is proved"))
	}
	lines = append(lines, r.evidence()...)
	if r.Folder != "" {
		lines = append(lines, "results: "+r.Folder)
	}
	return lines
}

// shownEvidence is the largest number of specs whose evidence has a line in the text.
const shownEvidence = 10

// evidence returns a line for the last bundle of each failed spec, with the most likely cause.
func (r Report) evidence() (lines []string) {
	for _, s := range r.Specs {
		if len(s.Evidence) == 0 || len(lines) >= shownEvidence {
			continue
		}
		last := s.Evidence[len(s.Evidence)-1]
		if last.Folder == "" {
			continue
		}
		line := "evidence: " + path.Join(last.Folder, evidence.SummaryName)
		if len(last.Causes) > 0 {
			line += ": " + ui.Printable(last.Causes[0])
		}
		lines = append(lines, line)
	}
	return lines
}

func firstLine(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return suite.Shortened(line, shownMessage)
}

func duration(s Spread) string {
	seconds := func(f float64) string { return ui.Seconds(time.Duration(f * float64(time.Second))) }
	switch {
	case s.Max == 0:
		return ""
	case s.Min == s.Max:
		return seconds(s.Max)
	}
	return seconds(s.Min) + "–" + seconds(s.Max)
}

func coloured(s Spec) string {
	switch s.Verdict {
	case Failed, Flaky:
		return ui.Bad(s.Words())
	case Passed:
		return ui.Good(s.Words())
	}
	return ui.Warn(s.Words())
}
