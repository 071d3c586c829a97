package preflight

import (
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// FleetReport is the result of the checks on several nodes.
type FleetReport struct {
	Nodes []NodeReport `json:"nodes"`
}

// NodeReport is the report of one node.
type NodeReport struct {
	fleet.Outcome // the node's result: ok, problems or failed
	Report
}

// NewFleetReport joins the reports of the nodes.
func NewFleetReport(results []fleet.Result[Report]) FleetReport {
	all := FleetReport{Nodes: []NodeReport{}}
	for _, result := range results {
		n := NodeReport{Outcome: result.Outcome(), Report: result.Value}
		switch {
		case result.Err != nil:
			n.Checks, n.Problems = []string{}, []finding.Problem{}
		case result.Value.Failed():
			n.Result = "problems"
		}
		all.Nodes = append(all.Nodes, n)
	}
	return all
}

// Failed reports whether a node was checked and has an error.
func (r FleetReport) Failed() bool {
	for _, n := range r.Nodes {
		if n.Result != fleet.Failed && n.Report.Failed() {
			return true
		}
	}
	return false
}

// WriteText writes the report for people. It omits a node that could not be checked, since
// the command's error reports that node.
func (r FleetReport) WriteText(w *ui.Page) error {
	for _, n := range r.Nodes {
		if n.Result == fleet.Failed {
			continue
		}
		if err := n.Report.WriteText(w, n.Name); err != nil {
			return err
		}
	}
	return nil
}
