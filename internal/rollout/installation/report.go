package installation

import (
	"slices"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Report is the result of an installation or a removal.
type Report struct {
	Cluster string `json:"cluster"` // the API server's URL
	Result  string `json:"result"`  // changed, unchanged or failed
	Error   string `json:"error"`   // "" if the command did not fail
	// Steps have one step for each object.
	Steps []plan.StepResult `json:"steps"`
}

// NewReport returns the report of steps. err is the error of the run, or nil.
func NewReport(c *cluster.Cluster, steps []plan.StepResult, err error) Report {
	r := Report{Cluster: c.Server(), Result: fleet.Unchanged, Steps: steps}
	if r.Steps == nil {
		r.Steps = []plan.StepResult{}
	}
	if slices.ContainsFunc(steps, func(s plan.StepResult) bool { return s.State == plan.Changed }) {
		r.Result = fleet.Changed
	}
	if err != nil {
		r.Result, r.Error = fleet.Failed, err.Error()
	}
	return r
}

// WriteText writes a line for each object, and in a dry run the fields that would change.
func (r Report) WriteText(p *ui.Page, dryRun bool) error {
	node := plan.NodeReport{Steps: r.Steps}
	node.Result = r.Result
	err := plan.Report{Nodes: []plan.NodeReport{node}}.WriteText(p, dryRun, "there is no object")
	if err != nil || !dryRun {
		return err
	}
	return plan.WriteDetails(p, r.Steps)
}
