// Package doctor finds faults of a node, and reports their remedies.
//
// Gather asks the node, its container runtime and its cluster for facts, in
// parallel; each fact is a value or the reason why it is unknown. Examine runs the
// rules on the facts. A rule contacts nothing, so that the same facts, read from a
// file or from a bundle, give the same findings. A rule that needs an unknown fact is
// skipped, which is not the same as finding nothing.
//
//   - facts.go, facts_kubernetes.go, facts_patches.go: all facts, with their JSON form. Facts contain neither keys
//     nor tokens, and swdt redacts the texts of facts when it stores them
//   - factsfile.go: stores facts in a file, and reads them again
//   - gather*.go, netsh.go, kubeconfig.go, containerd.go: gather the facts
//   - rules.go: the list of rules; rules_*.go: the rules, by subject
//   - fleet.go: runs the rules for several nodes
//   - text.go, pages.go: print reports and rules
package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Rule checks for one kind of fault.
type Rule struct {
	ID    string
	Title string
	// Means explains the consequences of the fault to a reader who does not know this fault yet.
	Means string
	// Severity is the severity of findings that set none of their own.
	Severity finding.Severity
	// Needs lists the facts that the rule requires, by their names in JSON.
	Needs []string
	// Remedy is the remedy of findings that set none of their own.
	Remedy string
	Link   string

	look func(*Facts) []finding.Finding
}

// Skipped is a rule that did not run because a fact that it needs is unknown.
type Skipped struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// Report is the result of the rules for one node.
type Report struct {
	Node     string          `json:"name"`
	Windows  string          `json:"windows"` // ltsc2022
	Rules    []string        `json:"rules"`   // the rules that ran
	Skipped  []Skipped       `json:"skipped"`
	Findings []finding.Fault `json:"findings"` // the worst first
}

// Examine runs the rules with the given ids on facts, or all rules if no id is given.
func Examine(f Facts, ids ...string) (Report, error) {
	rules, err := Select(ids)
	if err != nil {
		return Report{}, err
	}
	r := Report{Node: f.Node, Rules: []string{}, Skipped: []Skipped{}, Findings: []finding.Fault{}}
	if f.Machine.Value != nil {
		r.Windows = f.Machine.Value.Windows()
	}
	for _, rule := range rules {
		if why := rule.unknown(&f); why != "" {
			r.Skipped = append(r.Skipped, Skipped{rule.ID, why})
			continue
		}
		r.Rules = append(r.Rules, rule.ID)
		for _, found := range rule.look(&f) {
			r.Findings = append(r.Findings, rule.complete(found))
		}
	}
	finding.Sort(r.Findings)
	return r, nil
}

// UnknownRuleError reports an id that no rule has.
type UnknownRuleError struct{ ID string }

func (e *UnknownRuleError) Error() string {
	return fmt.Sprintf("there is no rule %q; `swdt doctor --list-rules` lists them", e.ID)
}

// Select returns the rules with the given ids in the order of Rules, or all rules if
// no id is given.
func Select(ids []string) ([]Rule, error) {
	all := Rules()
	if len(ids) == 0 {
		return all, nil
	}
	var chosen []Rule
	for _, rule := range all {
		if slices.ContainsFunc(ids, func(id string) bool { return strings.EqualFold(id, rule.ID) }) {
			chosen = append(chosen, rule)
		}
	}
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(r Rule) bool { return strings.EqualFold(id, r.ID) }) {
			return nil, &UnknownRuleError{ID: id}
		}
	}
	return chosen, nil
}

// unknown returns why a fact that the rule needs is unknown, or "" if all are known.
func (r Rule) unknown(f *Facts) string {
	for _, name := range r.Needs {
		if why := f.unknown(name); why != "" {
			return why
		}
	}
	return ""
}

// complete returns a finding of the rule, with the rule's severity and remedy unless the
// finding has its own.
func (r Rule) complete(f finding.Finding) finding.Fault {
	f.Severity, f.Remedy = cmp.Or(f.Severity, r.Severity), cmp.Or(f.Remedy, r.Remedy)
	return finding.Fault{Rule: r.ID, Finding: f, Link: r.Link}
}

// one returns a slice that contains only value.
func one[T any](value T) []T { return []T{value} }
