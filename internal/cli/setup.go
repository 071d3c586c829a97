package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/ui"
)

type setupOptions struct{ allowReboot bool }

func (a *app) setupCommand() *cobra.Command {
	o := &setupOptions{}
	cmd := forNodes(&cobra.Command{
		Use:   "setup [flags]",
		Short: "Bring Windows to what the node file's setup says",
		Long: `Brings the node to what spec.setup of its node file says: Remote Desktop, SSH
keys, hosts entries, environment and PATH, firewall rules, Windows features, and
Chocolatey with packages. Each is compared first and changed only if it differs,
so a second run finds nothing to do; what the file does not mention is left
alone.

A change that takes effect after a reboot ends with exit code 1 and says so,
unless --allow-reboot lets swdt reboot the node and go on.`,
		Example: examples(
			"setup", "",
			"setup --dry-run", "what would change",
			"setup --allow-reboot", "reboot where a feature needs it",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runSetup(cmd.Context(), o) },
	})
	cmd.Flags().BoolVar(&o.allowReboot, "allow-reboot", false, "reboot the node where a change needs it, wait, and go on")
	return cmd
}

func (a *app) runSetup(ctx context.Context, o *setupOptions) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	options := plan.Options{DryRun: a.global.dryRun, AllowReboot: o.allowReboot}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) ([]plan.StepResult, error) {
		steps := setup.Steps(doc.Node.Spec.Setup, setup.Options{Resolve: doc.Resolve})
		return plan.Run(ctx, n, steps, options, r)
	})
	report := newSetupReport(results)
	err = ui.Print(a.streams.Out, a.global.output, report, func(w io.Writer) error {
		return report.writeText(w, a.global.dryRun)
	})
	if err != nil {
		return err
	}
	return fleet.Failures(results)
}

type setupReport struct {
	Nodes   []setupNode  `json:"nodes"`
	Summary setupSummary `json:"summary"`
}

type setupNode struct {
	Name    string            `json:"name"`
	Result  string            `json:"result"` // changed, unchanged or failed
	Message string            `json:"message,omitempty"`
	Steps   []plan.StepResult `json:"steps"`
}

type setupSummary struct {
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	Failed    int `json:"failed"`
}

func newSetupReport(results []fleet.Result[[]plan.StepResult]) setupReport {
	report := setupReport{Nodes: []setupNode{}}
	for _, result := range results {
		n := setupNode{Name: result.Name(), Result: "unchanged", Steps: result.Value}
		if n.Steps == nil {
			n.Steps = []plan.StepResult{}
		}
		for _, step := range n.Steps {
			if step.State == plan.Changed {
				n.Result = "changed"
			}
		}
		switch {
		case result.Err != nil:
			n.Result, n.Message = "failed", result.Err.Error()
			report.Summary.Failed++
		case n.Result == "changed":
			report.Summary.Changed++
		default:
			report.Summary.Unchanged++
		}
		report.Nodes = append(report.Nodes, n)
	}
	return report
}

func (r setupReport) writeText(w io.Writer, dryRun bool) error {
	for _, n := range r.Nodes {
		if len(r.Nodes) > 1 {
			headline := n.Name + ":"
			if len(n.Steps) == 0 && n.Result == "failed" {
				headline += " failed"
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
		if line := n.closing(dryRun); line != "" {
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
		state = "reboot required"
	case step.State == plan.Skipped && dryRun && step.Change != "":
		return []string{step.Name, "would change", what}
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
func (n setupNode) closing(dryRun bool) string {
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
	case n.Result == "failed":
		return "" // the error says it
	case len(n.Steps) == 0:
		return "nothing to do: the node file has no spec.setup"
	case dryRun && needed > 0:
		return fmt.Sprintf("%d of %d would change", needed, len(n.Steps))
	case changed > 0:
		return fmt.Sprintf("%d of %d changed", changed, len(n.Steps))
	}
	return "nothing to do"
}
