package finding

import "slices"

// Side is the place of a problem: the node, the cluster or your machine.
type Side string

const (
	OnNode    Side = "node"
	OnCluster Side = "cluster"
	OnMachine Side = "machine" // your machine
)

// Problem is a finding of a check before a join, or before a VM is made.
type Problem struct {
	Check string `json:"check"`
	Where Side   `json:"where"`
	Finding
	// Ignored reports whether the node file has made the error a warning.
	Ignored bool `json:"ignored"`
}

// Fault is a finding of a rule of the doctor.
type Fault struct {
	Rule string `json:"rule"`
	Finding
	Link string `json:"link"` // the address of the rule's documentation
}

// Found is a finding with its origin: a Finding, a Problem or a Fault.
type Found interface{ severity() Severity }

func (f Finding) severity() Severity { return f.Severity }

// Sort sorts findings by severity, the worst first. Findings of the same severity keep
// their order.
func Sort[F Found](all []F) {
	slices.SortStableFunc(all, func(a, b F) int { return a.severity().Compare(b.severity()) })
}

// Has reports whether there is a finding of severity s or worse.
func Has[F Found](all []F, s Severity) bool {
	return slices.ContainsFunc(all, func(f F) bool { return f.severity().AtLeast(s) })
}

// Count returns the number of findings of severity s.
func Count[F Found](all []F, s Severity) (n int) {
	for _, f := range all {
		if f.severity() == s {
			n++
		}
	}
	return n
}

// Entry returns the problem in the form that Write prints.
func (p Problem) Entry() Entry {
	e := Entry{By: p.Check, Finding: p.Finding}
	if p.Ignored {
		e.What += " (ignored)"
	}
	return e
}

// Entry returns the fault in the form that Write prints.
func (f Fault) Entry() Entry { return Entry{By: f.Rule, Finding: f.Finding} }
