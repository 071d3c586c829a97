package cli

import (
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/preflight"
	"github.com/swdt-dev/swdt/internal/ui"
)

// stepsOutcome is what became of one node's plan, and what was found before it.
type stepsOutcome struct {
	Steps    []plan.StepResult
	Problems []preflight.Problem
}

// printSteps prints what became of each node's plan; noSteps says why a node has
// none.
func (a *app) printSteps(results []fleet.Result[stepsOutcome], noSteps string) error {
	report := newStepsReport(results)
	err := a.print(report, func(p *ui.Page) error { return report.writeText(p, a.global.dryRun, noSteps) })
	if err != nil {
		return err
	}
	return fleet.Failures(results)
}

// stepsReport is the result of a command that runs a plan on each node.
type stepsReport struct {
	Nodes   []stepsNode  `json:"nodes"`
	Summary stepsSummary `json:"summary"`
}

type stepsNode struct {
	frame                   // its result: changed, unchanged or failed
	Steps []plan.StepResult `json:"steps"`
	// Problems are those that were found before anything was done.
	Problems []preflight.Problem `json:"problems"`
}

type stepsSummary struct {
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Failed    int `json:"failed"`
}

func newStepsReport(results []fleet.Result[stepsOutcome]) stepsReport {
	report := stepsReport{Nodes: []stepsNode{}}
	for _, result := range results {
		n := stepsNode{
			frame: newFrame(result.Name(), resultUnchanged, result.Err),
			Steps: orNone(result.Value.Steps), Problems: orNone(result.Value.Problems),
		}
		changed := slices.ContainsFunc(n.Steps, func(s plan.StepResult) bool { return s.State == plan.Changed })
		switch {
		case result.Err != nil:
			report.Summary.Failed++
		case changed:
			n.Result = resultChanged
			report.Summary.Changed++
		default:
			report.Summary.Unchanged++
		}
		report.Nodes = append(report.Nodes, n)
	}
	return report
}

func (r stepsReport) writeText(w *ui.Page, dryRun bool, noSteps string) error {
	for _, n := range r.Nodes {
		if len(r.Nodes) > 1 {
			headline := n.Name + ":"
			if len(n.Steps) == 0 && n.Result == resultFailed {
				headline += " " + ui.Bad("failed")
			}
			if _, err := fmt.Fprintln(w, headline); err != nil {
				return err
			}
		}
		var rows [][]string
		for _, step := range n.Steps {
			rows = append(rows, stepRow(step, dryRun))
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

func stepRow(step plan.StepResult, dryRun bool) []string {
	state, what := string(step.State), step.Change
	switch {
	case step.State == plan.RebootRequired:
		state = ui.Warn("reboot required")
	case step.State == plan.Skipped && dryRun && step.Change != "":
		return []string{step.Name, "would change", what}
	case step.State == plan.Failed: // the node's error says why
		return []string{step.Name, ui.Bad(state), what}
	}
	if what == "" {
		what = step.Message
	} else if step.Message != "" {
		what += " (" + step.Message + ")"
	}
	if what == "" {
		return []string{step.Name, state}
	}
	return []string{step.Name, state, what}
}

// closing is the line that sums a node up.
func (n stepsNode) closing(dryRun bool, noSteps string) string {
	var changed, needed int
	for _, step := range n.Steps {
		switch step.State {
		case plan.Changed:
			changed++
		case plan.Skipped:
			needed++
		}
	}
	switch {
	case n.Result == resultFailed:
		return "" // the error says it
	case len(n.Steps) == 0:
		return "nothing to do: " + noSteps
	case dryRun && needed > 0:
		return fmt.Sprintf("%d of %d would change", needed, len(n.Steps))
	case changed > 0:
		return fmt.Sprintf("%d of %d changed", changed, len(n.Steps))
	}
	return "nothing to do"
}
