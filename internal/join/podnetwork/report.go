package podnetwork

import (
	"slices"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Report is the result of an installation or a removal.
type Report struct {
	Cluster string `json:"cluster"` // the API server's URL
	Network string `json:"network"`
	Result  string `json:"result"` // changed, unchanged or failed
	Error   string `json:"error"`  // "" if the command did not fail
	// Problems has the warnings about nodes of the cluster that were found before anything was changed.
	Problems []finding.Problem `json:"problems"`
	// Steps have the state of each step. The detail of a step is its difference to the cluster.
	Steps []plan.StepResult `json:"steps"`
	// Nodes has the nodes of the node files, if swdt looked at them.
	Nodes []NodeReport `json:"nodes"`
}

// NodeReport is the state of the pod network on one node.
type NodeReport struct {
	fleet.Outcome        // the node's result: ok or failed
	HNSNetwork    string `json:"hnsNetwork"` // the network's name in HNS; "" if the network is missing
	Type          string `json:"type"`       // the network's type in HNS: Overlay, L2Bridge…; "" if the network is missing
}

// WriteNodes writes a line for each node.
func WriteNodes(p *ui.Page, nodes []NodeReport) error {
	var rows [][]string
	for _, n := range nodes {
		row := []string{n.Name, "ok", "HNS network " + n.HNSNetwork + ", " + n.Type}
		if n.Result == fleet.Failed {
			row = []string{n.Name, ui.Bad("not ready"), n.Error}
		}
		rows = append(rows, row)
	}
	return ui.Lines(p, rows)
}

func newReport(c *cluster.Cluster, n cni.Network) Report {
	return Report{Cluster: c.Server(), Network: string(n), Problems: []finding.Problem{}, Steps: []plan.StepResult{},
		Nodes: []NodeReport{}}
}

// Refused returns the report of an installation that did not begin, and err, which is the reason.
func Refused(c *cluster.Cluster, n cni.Network, err error) (Report, error) {
	return newReport(c, n).ended(err)
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

// WithNodes returns the report with the state of nodes. err is the error of a node, or nil.
func (r Report) WithNodes(nodes []NodeReport, err error) (Report, error) {
	r.Nodes = append(r.Nodes, nodes...)
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
	if err := report.WriteText(p, dryRun, "there is no step"); err != nil {
		return err
	}
	if err := WriteNodes(p, r.Nodes); err != nil || !dryRun {
		return err
	}
	return plan.WriteDetails(p, r.Steps)
}
