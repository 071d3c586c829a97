package settingchange

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join/nodesettings"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// Strip returns a text of a program without settings. Other bytes stay, and if another setting would change, it is an
// *OtherSettingError.
func Strip(text nodesettings.Text, removals []Wish, table *kubesettings.Table) ([]byte, error) {
	texts := nodesettings.Texts{All: []nodesettings.Text{text}}
	s := &Settings{Program: text.Program, table: table, texts: texts, facts: factsOf(texts, text.Program, table)}
	p, err := s.Plan(removals)
	if err != nil {
		return nil, err
	}
	return p.drafts[0].after, nil
}

// WithoutGate returns the value of --feature-gates without a gate. keep is false if none is left.
func WithoutGate(gates, name string) (changed string, keep bool) { return withGate(gates, name, "") }

// FixReport is the result of `swdt upgrade check --fix`.
type FixReport struct {
	// Check has the findings before the change.
	Check upgradecheck.Report `json:"check"`
	// Fixed has the changes of nodes.
	Fixed push.Report `json:"fixed"`
	// Left are the findings that no change of a node's settings settles.
	Left []upgradecheck.Finding `json:"left"`
}

// Complete adds the changes of the nodes.
func (r *FixReport) Complete(results []fleet.Result[push.NodeResult]) {
	r.Fixed = push.NewReport(results)
	if r.Left == nil {
		r.Left = []upgradecheck.Finding{}
	}
}

// LeftHas reports whether a finding of severity s or worse is left.
func (r *FixReport) LeftHas(s finding.Severity) bool {
	var all []finding.Finding
	for _, f := range r.Left {
		all = append(all, f.Finding)
	}
	return finding.Has(all, s)
}

// WriteText writes the changes, and what is left. The text of the check is written before the question.
func (r *FixReport) WriteText(p *ui.Page) error {
	if err := r.Fixed.WriteText(p); err != nil {
		return err
	}
	for _, f := range r.Left {
		if f.Severity == finding.Info {
			continue
		}
		if _, err := fmt.Fprintf(p, "left: %s: %s; %s\n", f.Places[0], f.What, f.Remedy); err != nil {
			return err
		}
	}
	return nil
}
