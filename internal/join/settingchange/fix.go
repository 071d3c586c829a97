package settingchange

import (
	"fmt"

	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

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
