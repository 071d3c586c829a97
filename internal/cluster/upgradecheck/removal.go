package upgradecheck

import (
	"slices"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Removal is a setting whose removal from a node, or from an object of a cluster, settles a finding.
type Removal struct {
	Node    string // "": it is in an object
	Object  string // such as DaemonSet kube-system/kube-proxy-windows; "": it is on a node
	Program kubesettings.Program
	Kind    Kind
	Name    string
}

// Removals returns the settings of nodes and of live objects with which a program ends and without which it runs, each once, and the findings
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
			r := Removal{Node: p.Node, Object: p.Object, Program: f.Setting.Program, Kind: f.Setting.Kind, Name: f.Setting.Name}
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

// removable reports whether the finding's setting at a place can be removed there. A note about an object may be
// for Linux nodes.
func (f Finding) removable(p Place) bool {
	rules := []string{ruleGateUnknown, ruleGateLocked, RuleFlagUnknown, ruleFieldWindows}
	onNode := p.Node != "" && p.Object == ""
	inObject := p.Node == "" && p.File == "" && p.Object != "" && f.Severity == finding.Error
	return f.Effect == Exits && slices.Contains(rules, f.Rule) && f.Setting.Form != Effective && f.Setting.Form != Image &&
		(onNode || inObject)
}
