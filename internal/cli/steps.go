package cli

import (
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// printSteps prints the result of each node's plan. noSteps explains why a node has no
// steps.
func (a *app) printSteps(results []fleet.Result[plan.Result], noSteps string) error {
	report := plan.NewReport(results)
	err := a.print(report, func(p *ui.Page) error { return report.WriteText(p, a.global.dryRun, noSteps) })
	if err != nil {
		return err
	}
	return fleet.Failures(results)
}
