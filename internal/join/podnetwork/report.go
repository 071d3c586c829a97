package podnetwork

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Report is the result of an installation or a removal.
type Report struct {
	Cluster string `json:"cluster"` // the API server's URL
	Network string `json:"network"`
	Result  string `json:"result"` // changed, unchanged or failed
	Error   string `json:"error"`  // "" if it did not fail
	// Steps have the state of each step. Their detail is the difference to the cluster.
	Steps []plan.StepResult `json:"steps"`
}

func newReport(c *cluster.Cluster, n cni.Network) Report {
	return Report{Cluster: c.Server(), Network: string(n), Steps: []plan.StepResult{}}
}

// ended fills in the result.
func (r Report) ended(err error) (Report, error) {
	if r.Steps == nil {
		r.Steps = []plan.StepResult{}
	}
	r.Result = fleet.Unchanged
	if slices.ContainsFunc(r.Steps, func(s plan.StepResult) bool { return s.State == plan.Changed }) {
		r.Result = fleet.Changed
	}
	if err != nil {
		r.Result, r.Error = fleet.Failed, err.Error()
	}
	return r, err
}

// WriteText writes a line for each step. In a dry run, it writes the differences too.
func (r Report) WriteText(p *ui.Page, dryRun bool) error {
	node := plan.NodeReport{Steps: r.Steps}
	node.Result = r.Result
	report := plan.Report{Nodes: []plan.NodeReport{node}}
	if err := report.WriteText(p, dryRun, "there is no step"); err != nil || !dryRun {
		return err
	}
	for _, step := range r.Steps {
		if step.Detail == "" {
			continue
		}
		if _, err := fmt.Fprintf(p, "\n%s:\n", step.Name); err != nil {
			return err
		}
		for line := range strings.Lines(step.Detail) {
			if _, err := fmt.Fprintf(p, "  %s\n", strings.TrimRight(line, "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}
