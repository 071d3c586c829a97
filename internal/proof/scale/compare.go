package scale

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/ui"
)

// DefaultTolerance is by how many percent a value may grow before it counts as worse.
const DefaultTolerance = 20

// Comparison is the difference between two runs.
type Comparison struct {
	Before    Compared `json:"before"`
	After     Compared `json:"after"`
	Load      Load     `json:"load"`
	Tolerance float64  `json:"tolerance"` // in percent
	Values    []Value  `json:"values"`
}

// Compared names one of the runs.
type Compared struct {
	Folder     string `json:"folder"`
	Result     string `json:"result"`
	Kubernetes string `json:"kubernetes"`
}

// Value is one measured value in both runs.
type Value struct {
	Node   string  `json:"node"` // of the second run
	Phase  string  `json:"phase"`
	Name   string  `json:"name"`
	Unit   string  `json:"unit"` // seconds, bytes or count
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// Change is better, worse or same. It is same as well if the difference is within the tolerance, or
	// within the resolution of both runs.
	Change string `json:"change"`
}

// The changes of a value.
const (
	Better = "better"
	Worse  = "worse"
	Same   = "same"
)

// IncomparableError reports two runs that cannot be compared.
type IncomparableError struct{ Why string }

func (e *IncomparableError) Error() string { return "the runs cannot be compared: " + e.Why }

// Compare returns the difference between two runs, of which a is the earlier one. tolerance is in percent.
// Nodes are matched by their names; if both runs have only one, these are compared. The error is an
// *IncomparableError if the runs have different loads, or no node in common.
func Compare(a, b Report, tolerance float64) (Comparison, error) {
	c := Comparison{Before: compared(a), After: compared(b), Load: a.Load, Tolerance: tolerance, Values: []Value{}}
	if a.Load != b.Load {
		return c, &IncomparableError{fmt.Sprintf("the one has %s of %s, the other %s of %s; use the same numbers", a.Load,
			a.Load.Range, b.Load, b.Load.Range)}
	}
	for _, after := range b.Nodes {
		before, ok := a.node(after.Name)
		if !ok && len(a.Nodes) == 1 && len(b.Nodes) == 1 {
			before, ok = a.Nodes[0], true
		}
		if ok {
			c.node(before, after)
		}
	}
	if len(c.Values) == 0 {
		return c, &IncomparableError{"they have no phase of a node in common"}
	}
	return c, nil
}

func compared(r Report) Compared {
	return Compared{Folder: r.Folder, Result: r.Result, Kubernetes: r.Kubernetes}
}

func (r Report) node(name string) (NodeReport, bool) {
	for _, n := range r.Nodes {
		if n.Name == name {
			return n, true
		}
	}
	return NodeReport{}, false
}

func (c *Comparison) node(before, after NodeReport) {
	for _, p := range after.Phases {
		for _, was := range before.Phases {
			if was.Phase == p.Phase {
				c.phase(after.Name, was, p)
			}
		}
	}
}

// phase adds the values of a phase.
func (c *Comparison) phase(node string, was, p NodePhase) {
	resolution := max(was.Resolution.Max, p.Resolution.Max)
	add := func(name, unit string, before, after, within float64) {
		v := Value{Node: node, Phase: p.Phase, Name: name, Unit: unit, Before: before, After: after, Change: Same}
		difference := after - before
		switch {
		case max(difference, -difference) <= within:
		case difference > before*c.Tolerance/100:
			v.Change = Worse
		case -difference > before*c.Tolerance/100:
			v.Change = Better
		}
		c.Values = append(c.Values, v)
	}
	add("problems", "count", float64(was.FaultCount), float64(p.FaultCount), 0)
	add("half", "seconds", was.Time.Half, p.Time.Half, resolution)
	add("99%", "seconds", was.Time.P99, p.Time.P99, resolution)
	add("all", "seconds", was.Time.Max, p.Time.Max, resolution)
	if was.Metrics && p.Metrics {
		add("mean sync", "seconds", was.Syncs.MeanSeconds, p.Syncs.MeanSeconds, 0.01)
	}
	if was.ProxyMemoryBytes > 0 && p.ProxyMemoryBytes > 0 {
		add("proxy CPU", "seconds", was.CPU.ProxySeconds, p.CPU.ProxySeconds, 0.1)
		add("proxy memory", "bytes", float64(was.ProxyMemoryBytes), float64(p.ProxyMemoryBytes), 1<<20)
	}
	if was.CPU.HNSSeconds > 0 && p.CPU.HNSSeconds > 0 {
		add("HNS CPU", "seconds", was.CPU.HNSSeconds, p.CPU.HNSSeconds, 0.1)
	}
}

// Worse reports whether a value is worse in the second run.
func (c Comparison) Worse() bool {
	for _, v := range c.Values {
		if v.Change == Worse {
			return true
		}
	}
	return false
}

// ComparisonColumns returns the columns of the table of a Comparison. If wide is true, they are those of -o wide.
func ComparisonColumns(wide bool) []string {
	header := []string{"CHANGE", "NODE", "PHASE", "VALUE", "BEFORE", "AFTER", "BY"}
	if wide {
		header = append(header, "UNIT")
	}
	return header
}

// WriteText writes a line for each value that differs; with the format wide, for each value.
func (c Comparison) WriteText(p *ui.Page) error {
	var rows [][]string
	counts := map[string]int{}
	for _, v := range c.Values {
		counts[v.Change]++
		if v.Change == Same && !p.Wide {
			continue
		}
		row := []string{v.coloured(), v.Node, v.Phase, v.Name, v.text(v.Before), v.text(v.After), v.percent()}
		if p.Wide {
			row = append(row, v.Unit)
		}
		rows = append(rows, row)
	}
	err := ui.TableOr(p, "no value differs", ComparisonColumns(p.Wide), rows)
	if err == nil {
		_, err = fmt.Fprintf(p, "%s: %d worse, %d better, %d the same, within %g%% or the resolution\n", c.Load,
			counts[Worse], counts[Better], counts[Same], c.Tolerance)
	}
	return err
}

func (v Value) coloured() string {
	switch v.Change {
	case Worse:
		return ui.Bad(v.Change)
	case Better:
		return ui.Good(v.Change)
	}
	return v.Change
}

func (v Value) text(value float64) string {
	switch v.Unit {
	case "seconds":
		return seconds(value)
	case "bytes":
		return ui.Size(int64(value))
	}
	return fmt.Sprintf("%g", value)
}

func (v Value) percent() string {
	if v.Before == 0 {
		return "-"
	}
	return fmt.Sprintf("%+.0f%%", 100*(v.After-v.Before)/v.Before)
}
