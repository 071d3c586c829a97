// Package doctor says what is wrong with a node, and what to do about it.
//
// Gather asks the node, its container runtime and its cluster for facts, side by
// side; each may be unknown, and then says why. Examine lets every rule look at
// them. A rule asks nobody anything, so that the same facts, from a file or out of
// a bundle, give the same findings; one whose facts are unknown is not looked at,
// which is not the same as nothing found.
//
//   - facts.go: all that rules look at; it is JSON, without keys and tokens; swdt
//     takes out of its texts what may be a secret, when it keeps them
//   - gather*.go, netsh.go, kubeconfig.go, containerd.go: where it comes from
//   - rules.go: the list; rules_*.go: the rules, by what they are about
//   - text.go, pages.go: for people
package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/finding"
)

// Severity of a finding.
type Severity = finding.Severity

const (
	Error   = finding.Error
	Warning = finding.Warning
	Info    = finding.Info
)

// Severities are all, the worst first.
func Severities() []Severity { return finding.Severities() }

// Finding is something that a rule has found.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Evidence string   `json:"evidence,omitempty"` // what was seen
	Remedy   string   `json:"remedy,omitempty"`
	Link     string   `json:"link,omitempty"`
}

// Rule is one thing that can be wrong.
type Rule struct {
	ID    string
	Title string
	// Means is what follows from it, for somebody who meets it for the first time.
	Means string
	// Severity is that of its findings, where they do not say otherwise.
	Severity Severity
	// Needs are the facts without which it cannot look, by their names in JSON.
	Needs []string
	// Remedy is what to do, where a finding does not know better.
	Remedy string
	Link   string

	look func(*Facts) []Finding
}

// Skipped is a rule that could not look.
type Skipped struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
}

// Report is what was found.
type Report struct {
	Node     string    `json:"name"`
	Windows  string    `json:"windows,omitempty"` // ltsc2022
	Rules    []string  `json:"rules"`             // that have looked
	Skipped  []Skipped `json:"skipped"`
	Findings []Finding `json:"findings"` // the worst first
}

// Count is how many findings are as bad as s.
func (r Report) Count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Has is whether there is a finding as bad as s, or worse.
func (r Report) Has(s Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity.AtLeast(s) })
}

// Examine lets rules look at facts: those of the ids, or all where none is given.
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

// UnknownRuleError: there is no such rule.
type UnknownRuleError struct{ ID string }

func (e *UnknownRuleError) Error() string {
	return fmt.Sprintf("there is no rule %q; `swdt doctor --list-rules` lists them", e.ID)
}

// Select are the rules of the ids, in the rules' own order; all where none is given.
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

// unknown is why a fact that the rule needs is not known.
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

// found is a finding in the making.
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

// one is a list of it.
func one[T any](value T) []T { return []T{value} }
