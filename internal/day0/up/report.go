package up

import (
	"fmt"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Report is the result of up or down.
type Report struct {
	fleet.Outcome         // the result for the cluster: changed, unchanged or failed
	Stages        []Stage `json:"stages"`
	// Kept describes the things that Down has not removed.
	Kept []string `json:"kept"`
	// Check is the result of the smoke test; null if the smoke test was not run or tested no node.
	Check *smoke.Report `json:"check"`
	// Ready has the times of the nodes that are Ready; a report of Down has none.
	Ready []ReadyTime `json:"ready"`
	// Seconds is the duration of all stages together.
	Seconds float64 `json:"seconds"`
}

func newReport(name string, stages []Stage, kept []string, took time.Duration, err error) Report {
	report := Report{
		Outcome: fleet.NewOutcome(name, fleet.Unchanged, err), Stages: append([]Stage{}, stages...),
		Kept: append([]string{}, kept...), Ready: []ReadyTime{}, Seconds: took.Seconds(),
	}
	for _, stage := range stages {
		if err == nil && stage.Result == fleet.Changed {
			report.Result = fleet.Changed
		}
	}
	return report
}

// Names returns the cluster for -o name.
func (r Report) Names() []string { return []string{"cluster/" + r.Name} }

// WriteText writes the report for people: a line for each stage, and a summary. dryRun reports
// whether the run was a dry run, which changes nothing.
func (r Report) WriteText(page *ui.Page, dryRun bool) error {
	var rows [][]string
	for _, stage := range r.Stages {
		message := stage.Message
		if stage.Error != "" {
			message, _, _ = strings.Cut(stage.Error, "\n") // the command prints the whole error later
		}
		row := []string{stage.Stage, stage.Node, stage.Result, took(stage), message}
		if dryRun {
			row = []string{stage.Stage, stage.Node, "would change", message}
			if stage.Result != fleet.Changed {
				row[2] = stage.Result
			}
		}
		rows = append(rows, row)
	}
	if err := ui.Lines(page, rows); err != nil {
		return err
	}
	if r.Check != nil {
		if err := r.Check.WriteText(page); err != nil {
			return err
		}
	}
	if r.Result != fleet.Unchanged && !dryRun {
		for _, ready := range r.Ready {
			if _, err := fmt.Fprintln(page, ready.String()); err != nil {
				return err
			}
		}
	}
	for _, kept := range r.Kept {
		if _, err := fmt.Fprintln(page, "kept: "+kept); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(page, "cluster %s: %s\n", r.Name, r.sentence(dryRun))
	return err
}

// took returns the duration of a stage in words; empty if the stage did not run.
func took(stage Stage) string {
	if stage.Result == Skipped {
		return ""
	}
	return seconds(stage.Seconds)
}

func (r Report) sentence(dryRun bool) string {
	after := " in " + seconds(r.Seconds)
	switch {
	case r.Result == fleet.Failed:
		return "failed" + after
	case r.Result == fleet.Unchanged:
		return "nothing to do"
	case dryRun:
		return "`swdt up` without --dry-run does this"
	}
	return "done" + after
}
