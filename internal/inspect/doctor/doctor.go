// Package doctor finds faults of a node, and reports their remedies.
//
// Gather asks the node, its container runtime and its cluster for facts, in
// parallel; each fact is a value or the reason why it is unknown. Examine runs every
// rule on the facts. A rule contacts nothing, so that the same facts, read from a
// file or from a bundle, give the same findings. A rule that needs an unknown fact is
// skipped, which is not the same as finding nothing.
//
//   - facts.go: all facts that rules read; as JSON, without keys and tokens; swdt
//     redacts their texts when it stores them
//   - gather*.go, netsh.go, kubeconfig.go, containerd.go: gather the facts
//   - rules.go: the list of rules; rules_*.go: the rules, by subject
//   - text.go, pages.go: print reports and rules
package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Severity is the severity of a finding.
type Severity = finding.Severity

const (
	Error   = finding.Error
	Warning = finding.Warning
	Info    = finding.Info
)

// Severities returns all severities, the worst first.
func Severities() []Severity { return finding.Severities() }

// Finding is one fault that a rule found.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Evidence string   `json:"evidence"` // the observed facts
	Remedy   string   `json:"remedy"`
	Link     string   `json:"link"`
}

// Rule checks for one kind of fault.
type Rule struct {
	ID    string
	Title string
	// Means explains the consequences of the fault to a reader who does not know it yet.
	Means string
	// Severity is the severity of findings that set none of their own.
	Severity Severity
	// Needs lists the facts that the rule requires, by their names in JSON.
	Needs []string
	// Remedy is the remedy of findings that set none of their own.
	Remedy string
	Link   string

	look func(*Facts) []Finding
}

// Skipped is a rule that did not run because a fact that it needs is unknown.
type Skipped struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// Report is the result of all rules for one node.
type Report struct {
	Node     string    `json:"name"`
	Windows  string    `json:"windows"` // ltsc2022
	Rules    []string  `json:"rules"`   // the rules that ran
	Skipped  []Skipped `json:"skipped"`
	Findings []Finding `json:"findings"` // the worst first
}

// Count returns the number of findings of severity s.
func (r Report) Count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Has reports whether there is a finding of severity s or worse.
func (r Report) Has(s Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity.AtLeast(s) })
}

// Examine runs the rules with the given ids on facts, or all rules if no id is given.
func Examine(f Facts, ids ...string) (Report, error) {
	rules, err := Select(ids)
	if err != nil {
		return Report{}, err
	}
	r := Report{Node: f.Node, Rules: []string{}, Skipped: []Skipped{}, Findings: []Finding{}}
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
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return a.Severity.Compare(b.Severity) })
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

func (r Rule) complete(f Finding) Finding {
	f.Rule, f.Severity = r.ID, cmp.Or(f.Severity, r.Severity)
	f.Remedy, f.Link = cmp.Or(f.Remedy, r.Remedy), cmp.Or(f.Link, r.Link)
	return f
}

// found returns a finding with its evidence and text. Rule.complete sets its other fields.
func found(evidence, what string, args ...any) Finding {
	return Finding{What: fmt.Sprintf(what, args...), Evidence: evidence}
}

func (f Finding) as(s Severity) Finding {
	f.Severity = s
	return f
}

func (f Finding) remedied(format string, args ...any) Finding {
	f.Remedy = fmt.Sprintf(format, args...)
	return f
}

// one returns a slice that contains only value.
func one[T any](value T) []T { return []T{value} }
