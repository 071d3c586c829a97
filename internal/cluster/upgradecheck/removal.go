package upgradecheck

import (
	"slices"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
)

// Removal is a setting whose removal from a node settles a finding.
type Removal struct {
	Node    string
	Program kubesettings.Program
	Kind    Kind
	Name    string
}

// Removals returns the settings of nodes with which a program ends and without which it runs, each once, and the findings
// that their removal does not settle, or not at all of their places.
func Removals(findings []Finding) (removals []Removal, left []Finding) {
	for _, f := range findings {
		rest := f
		rest.Places = nil
		for _, p := range f.Places {
			if !f.removable(p) {
				rest.Places = append(rest.Places, p)
				continue
			}
			r := Removal{Node: p.Node, Program: f.Setting.Program, Kind: f.Setting.Kind, Name: f.Setting.Name}
			if !slices.Contains(removals, r) {
				removals = append(removals, r)
			}
		}
		if len(rest.Places) > 0 {
			left = append(left, rest)
		}
	}
	return removals, left
}

// removable reports whether the finding's setting at a place can be removed there.
func (f Finding) removable(p Place) bool {
	rules := []string{ruleGateUnknown, ruleGateLocked, RuleFlagUnknown, ruleFieldWindows}
	return f.Effect == Exits && slices.Contains(rules, f.Rule) && f.Setting.Form != Effective && f.Setting.Form != Image &&
		p.Node != "" && p.Object == ""
}
