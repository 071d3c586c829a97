package doctor

import (
	"slices"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// FleetReport is the result of `swdt doctor`.
type FleetReport struct {
	Nodes []NodeReport `json:"nodes"`
}

// NodeReport has the findings on one node.
type NodeReport struct {
	fleet.Outcome                 // Result is ok, findings or failed
	Windows       string          `json:"windows"` // ltsc2022
	Rules         []string        `json:"rules"`   // the rules that ran
	Skipped       []Skipped       `json:"skipped"`
	Findings      []finding.Fault `json:"findings"` // the worst first

	report Report // the remedies in this report name no node
}

// RuleList is the result of `swdt doctor --list-rules`.
type RuleList struct {
	Rules []Listed `json:"rules"`
}

func newNodeReport(outcome fleet.Outcome, r Report) NodeReport {
	return NodeReport{
		Outcome: outcome, report: r,
		Windows: r.Windows, Rules: r.Rules, Skipped: r.Skipped, Findings: slices.Clone(r.Findings),
	}
}

// Unexamined reports a node whose facts could not be gathered.
func Unexamined(name string, err error) NodeReport {
	return newNodeReport(fleet.NewOutcome(name, fleet.Failed, err), Report{})
}

// ExamineAll runs the rules with the given ids (no ids: all rules) on the facts of nodes, and
// returns the reports sorted by the nodes' names. It calls remedies to complete the swdt commands
// in a text about a node, so that the user can paste them.
func ExamineAll(all []Facts, remedies func(node, text string) string, rules ...string) (nodes []NodeReport) {
	for _, facts := range all {
		report, err := Examine(facts, rules...)
		result := fleet.OK
		if len(report.Findings) > 0 {
			result = "findings"
		}
		node := newNodeReport(fleet.NewOutcome(facts.Node, result, err), report)
		for i, f := range node.Findings { // node.report keeps the incomplete remedies, for grouping
			node.Findings[i].Remedy = remedies(facts.Node, f.Remedy)
		}
		nodes = append(nodes, node)
	}
	slices.SortStableFunc(nodes, func(a, b NodeReport) int { return natural.Compare(a.Name, b.Name) })
	return nodes
}

// Has reports whether a node has a finding of this severity or a worse one.
func (r FleetReport) Has(s finding.Severity) bool {
	return slices.ContainsFunc(r.Nodes, func(n NodeReport) bool { return finding.Has(n.report.Findings, s) })
}

// WriteText writes the reports of the nodes that were examined. It writes nothing about the other
// nodes: the command prints their errors to stderr.
func (r FleetReport) WriteText(p *ui.Page, o TextOptions) error {
	var reports []Report
	for _, n := range r.Nodes {
		if n.Error == "" {
			reports = append(reports, n.report)
		}
	}
	return WriteText(p, reports, o)
}
