package bake

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Report is the result of a run.
type Report struct {
	fleet.Outcome        // the node's result: changed or failed
	DryRun        bool   `json:"dryRun"`
	File          string `json:"file"`
	ManifestFile  string `json:"manifestFile"`
	// Machine is the temporary VM that was kept after a failure; empty: none.
	Machine string            `json:"machine"`
	Steps   []plan.StepResult `json:"steps"`
	// Manifest describes the image; null if there is none.
	Manifest *Manifest `json:"manifest"`
}

func newReport(doc config.Document, o Options) Report {
	return Report{
		Outcome: fleet.NewOutcome(doc.Node.Metadata.Name, fleet.Changed, nil), DryRun: o.DryRun, File: o.File,
		ManifestFile: manifestFile(o.File), Steps: []plan.StepResult{},
	}
}

// WriteText writes the report for people.
func (r Report) WriteText(page *ui.Page) error {
	var rows [][]string
	for _, step := range r.Steps {
		state, text := string(step.State), step.Change
		switch {
		case r.DryRun:
			state = "would run"
		case step.State == plan.Failed:
			state = ui.Bad(state)
		case step.State == plan.Changed:
			state = "done"
		}
		if step.Message != "" {
			text += " (" + step.Message + ")"
		}
		rows = append(rows, []string{step.Name, state, text})
	}
	if err := ui.Lines(page, rows); err != nil || r.Manifest == nil {
		return err
	}
	_, err := fmt.Fprintf(page, "%s  %s  sha256:%s\n%s\n", r.File, ui.Size(r.Manifest.Image.Size),
		r.Manifest.Image.SHA256, r.ManifestFile)
	return err
}
