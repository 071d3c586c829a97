package readiness

import (
	"context"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/proof/trial"
	"github.com/swdt-dev/swdt/internal/proof/verdict"
)

// e2eTest runs specs as swdt e2e does.
type e2eTest struct {
	c       *cluster.Cluster
	options trial.Options
	specs   map[string]suite.Spec // the specs of the program, by name
	total   int                   // their number
}

// E2ETest returns a Suite that runs e2e.test with the options. The Suite replaces their selection.
func E2ETest(c *cluster.Cluster, o trial.Options) Suite {
	return &e2eTest{c: c, options: o, specs: map[string]suite.Spec{}}
}

// List returns all specs of the program.
func (e *e2eTest) List(ctx context.Context) ([]Spec, error) {
	o := e.options
	o.Selection = suite.Selection{Focus: []string{"."}} // without a filter, e2e.test leaves out [Feature:…]
	plan, err := trial.List(ctx, e.c, o)
	if err != nil {
		return nil, err
	}
	e.total = plan.Total
	var all []Spec
	for _, s := range plan.Specs {
		e.specs[s.Name] = s
		all = append(all, Spec{Name: s.Name, Labels: s.Labels})
	}
	return all, nil
}

// Run runs the specs in one process.
func (e *e2eTest) Run(ctx context.Context, specs []Spec) (map[string]SpecResult, error) {
	var chosen []suite.Spec
	for _, s := range specs {
		chosen = append(chosen, e.specs[s.Name])
	}
	o := e.options
	o.Selection, o.Known = suite.Only(chosen...), &suite.Listing{Specs: chosen, Total: e.total}
	report, err := trial.Run(ctx, e.c, o)
	results := map[string]SpecResult{}
	for _, s := range report.Specs {
		results[s.Name] = SpecResult{Name: s.Name, Result: resultOf(s.Verdict), Message: s.Message,
			Seconds: s.Seconds.Median}
	}
	return results, err
}

// resultOf returns the result that a verdict on a spec means. A spec that skipped itself and a spec that
// is flaky are not proved.
func resultOf(v verdict.Verdict) string {
	switch v {
	case verdict.Passed:
		return Proved
	case verdict.Failed, verdict.Flaky:
		return Failed
	case verdict.Skipped:
		return NotPossible
	}
	return NotRun
}
