package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Result is the result of a plan on one node, and the problems that were found before the plan ran.
type Result struct {
	Steps    []StepResult
	Problems []finding.Problem
}

// Report is the result of a command that runs a plan on each node.
type Report struct {
	Nodes   []NodeReport `json:"nodes"`
	Summary Summary      `json:"summary"`
}

// NodeReport is the report of one node.
type NodeReport struct {
	fleet.Outcome              // the node's result: changed, unchanged or failed
	Steps         []StepResult `json:"steps"`
	// Problems were found before any step ran.
	Problems []finding.Problem `json:"problems"`
}

// Summary counts the nodes.
type Summary struct {
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Failed    int `json:"failed"`
}

// NewReport joins the results of the nodes.
func NewReport(results []fleet.Result[Result]) Report {
	report := Report{Nodes: []NodeReport{}}
	for _, result := range results {
		n := NodeReport{
			Outcome:  fleet.NewOutcome(result.Name(), fleet.Unchanged, result.Err),
			Steps:    append([]StepResult{}, result.Value.Steps...),
			Problems: append([]finding.Problem{}, result.Value.Problems...),
		}
		switch {
		case result.Err != nil:
			report.Summary.Failed++
		case slices.ContainsFunc(n.Steps, func(s StepResult) bool { return s.State == Changed }):
			n.Result = fleet.Changed
			report.Summary.Changed++
		default:
			report.Summary.Unchanged++
		}
		report.Nodes = append(report.Nodes, n)
	}
	return report
}

// WriteText writes the report for people. noSteps is the reason why a node has no steps.
func (r Report) WriteText(w *ui.Page, dryRun bool, noSteps string) error {
	for _, n := range r.Nodes {
		if len(r.Nodes) > 1 {
			headline := n.Name + ":"
			if len(n.Steps) == 0 && n.Result == fleet.Failed {
				headline += " " + ui.Bad("failed")
			}
			if _, err := fmt.Fprintln(w, headline); err != nil {
				return err
			}
		}
		var rows [][]string
		for _, step := range n.Steps {
			rows = append(rows, step.row(dryRun))
		}
		if err := ui.Lines(w, rows); err != nil {
			return err
		}
		if line := n.closing(dryRun, noSteps); line != "" {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// WriteDetails writes the details of the steps that have any, such as the fields that a dry run would change.
func WriteDetails(w *ui.Page, steps []StepResult) error {
	for _, step := range steps {
		if step.Detail == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s:\n", step.Name); err != nil {
			return err
		}
		for line := range strings.Lines(step.Detail) {
			if _, err := fmt.Fprintf(w, "  %s\n", strings.TrimRight(line, "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r StepResult) row(dryRun bool) []string {
	state, what := string(r.State), r.Change
	switch {
	case r.State == RebootRequired:
		state = ui.Warn("reboot required")
	case r.State == Skipped && dryRun && r.Change != "":
		return []string{r.Name, "would change", what}
	case r.State == Failed: // the node's error already reports the cause
		return []string{r.Name, ui.Bad(state), what}
	}
	if what == "" {
		what = r.Message
	} else if r.Message != "" {
		what += " (" + r.Message + ")"
	}
	if what == "" {
		return []string{r.Name, state}
	}
	return []string{r.Name, state, what}
}

// closing returns the line that summarizes a node.
func (n NodeReport) closing(dryRun bool, noSteps string) string {
	var changed, needed int
	for _, step := range n.Steps {
		switch step.State {
		case Changed:
			changed++
		case Skipped:
			needed++
		}
	}
	switch {
	case n.Result == fleet.Failed:
		return "" // the error has the cause
	case len(n.Steps) == 0:
		return "nothing to do: " + noSteps
	case dryRun && needed > 0:
		return fmt.Sprintf("%d of %d would change", needed, len(n.Steps))
	case changed > 0:
		return fmt.Sprintf("%d of %d changed", changed, len(n.Steps))
	}
	return "nothing to do"
}
