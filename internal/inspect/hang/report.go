package hang

import (
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
)

// NewReport returns the report of the dumps of nodes. remedies completes the commands in a text about a node.
func NewReport(results []fleet.Result[Node], created time.Time, remedies func(node, text string) string) Report {
	r := Report{Format: Format, Created: created.UTC().Truncate(time.Millisecond), Nodes: []Node{}}
	for _, result := range results {
		n := result.Value
		n.Outcome = result.Outcome()
		n.Waits, n.Calls, n.Probes = append([]Wait{}, n.Waits...), append([]Call{}, n.Calls...), append([]Probe{}, n.Probes...)
		n.Processes, n.Problems = append([]Process{}, n.Processes...), append([]string{}, n.Problems...)
		n.Unread = append([]string{}, n.Unread...)
		n.Remedy = remedies(n.Name, n.Remedy)
		r.Nodes = append(r.Nodes, n)
	}
	return r
}

// Waits reports whether a program of a node waits.
func (r Report) Waits() bool {
	return slices.ContainsFunc(r.Nodes, func(n Node) bool { return len(n.Waits) > 0 })
}

// Incomplete reports whether a program of a node was not read, without which it is not known that nothing waits there.
func (r Report) Incomplete() bool {
	return slices.ContainsFunc(r.Nodes, func(n Node) bool { return len(n.Unread) > 0 })
}

// Stuck reports whether a wait is in both dumps.
func (c Comparison) Stuck() bool {
	return slices.ContainsFunc(c.Nodes, func(d Difference) bool { return len(d.Stuck) > 0 })
}
