package readiness

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/proof/ability"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Disruptive is the label of specs that disturb nodes and the pods of others.
const Disruptive = "Disruptive"

// disturbs is the message of a case that Options.Disruptive would allow.
const disturbs = "it disturbs a node and its pods; `swdt readiness run --disruptive` runs it"

// Suite lists and runs the specs of e2e.test.
type Suite interface {
	// List returns all specs.
	List(ctx context.Context) ([]Spec, error)
	// Run runs specs in one process, and returns the result of each by its name. If it fails or ctx
	// ends, the results are those that are known.
	Run(ctx context.Context, specs []Spec) (map[string]SpecResult, error)
}

// Options configure a run.
type Options struct {
	Cases []Case // at least one
	// Suite runs the specs; nil: cases with specs are not run.
	Suite Suite
	// Smoke runs the pods of the probes, one on each Windows node.
	Smoke func(ctx context.Context) (smoke.Report, error)
	// Ability runs these probes of package ability on each Windows node.
	Ability func(ctx context.Context, probes []string) ([]ability.Result, error)
	// Kubelets answers the probes of kubelets; nil: the kubelets of the cluster.
	Kubelets Kubelets
	// Assume lists the needs that the cluster is assumed to have, whatever its facts show.
	Assume []string
	// Disruptive allows cases that disturb nodes.
	Disruptive bool
	// Records has the records of runs; the namespaces of killed ones are removed first. nil: none are.
	Records  *leftover.Store
	Reporter ui.Reporter // nil: nothing is reported
}

// run is one run.
type run struct {
	Options
	facts  Facts
	report Report
	specs  map[string][]Spec // the specs to run; the keys are the IDs of the cases
}

// Run proves the cases on a cluster: probes first, then all specs in one process. The report has a
// result for each case. The error is a *FailedError if a case failed, and an *IncompleteError if a case
// was not run although the cluster could prove it, or if no case was proved. Any other error means that
// nothing was run, or that ctx ended.
func Run(ctx context.Context, c *cluster.Cluster, o Options) (Report, error) {
	begin := time.Now()
	if o.Reporter == nil {
		o.Reporter = ui.Discard{}
	}
	if o.Kubelets == nil {
		o.Kubelets = kubelets{c}
	}
	w := &run{Options: o, specs: map[string][]Spec{}}
	defer ui.Done(o.Reporter)
	o.Reporter.Step("look at the cluster")
	if o.Records != nil {
		o.Records.Tidy(ctx, c, o.Reporter)
	}
	var err error
	if w.facts, err = Gather(ctx, c); err != nil {
		return Report{}, err
	}
	for _, need := range Needs() {
		if why := w.facts.Unknown[need]; why != nil {
			o.Reporter.Warn("it is unknown whether the cluster has %s: %v", need, why)
		}
	}
	w.report = newReport(w.facts, o.Cases)
	if err := w.choose(ctx); err != nil {
		return Report{}, err
	}
	err = errors.Join(w.probe(ctx), w.runSpecs(ctx))
	w.report.ended(time.Since(begin))
	if ctx.Err() != nil {
		return w.report, context.Cause(ctx)
	}
	if err != nil {
		return w.report, err
	}
	return w.report, w.report.failure()
}

// choose decides which cases can be run here, and finds their specs.
func (w *run) choose(ctx context.Context) error {
	var all []Spec
	bySpecs := slices.ContainsFunc(w.Cases, func(c Case) bool { return len(c.Specs) > 0 })
	if bySpecs && w.Suite != nil {
		w.Reporter.Step("list the specs")
		var err error
		if all, err = w.Suite.List(ctx); err != nil {
			return err
		}
	}
	for i, c := range w.Cases {
		result := &w.report.Cases[i]
		if why := w.impossible(c); why != "" {
			result.Result, result.Message = NotPossible, why
			continue
		}
		if c.Probe == ability.Reboot && !w.Disruptive {
			result.Result, result.Message = NotPossible, disturbs
		}
		if len(c.Specs) == 0 {
			continue
		}
		if w.Suite == nil {
			result.Message = "there is no e2e.test: --binary names one"
			continue
		}
		specs, err := c.Select(all)
		switch {
		case err != nil:
			result.Message = err.Error()
		case !w.Disruptive && slices.ContainsFunc(specs, func(s Spec) bool { return s.Has(Disruptive) }):
			result.Result, result.Message = NotPossible, disturbs
		default:
			w.specs[c.ID] = specs
		}
	}
	return nil
}

// impossible returns the reason why the cluster cannot prove the case; "" if it can.
func (w *run) impossible(c Case) string {
	if c.Impossible != "" {
		return c.Impossible
	}
	for _, need := range c.Needs {
		if slices.Contains(w.Assume, need) {
			continue
		}
		if why := w.facts.lacks(need); why != "" {
			return why
		}
	}
	return ""
}

// runSpecs runs the specs of all cases in one process.
func (w *run) runSpecs(ctx context.Context) error {
	var all []Spec
	for _, c := range w.Cases {
		all = append(all, w.specs[c.ID]...)
	}
	if len(all) == 0 || ctx.Err() != nil {
		return nil
	}
	w.Reporter.Step("run %d specs of e2e.test", len(all))
	results, err := w.Suite.Run(ctx, all)
	for i, c := range w.Cases {
		if specs := w.specs[c.ID]; len(specs) > 0 {
			w.report.Cases[i].take(specs, results)
			w.say(w.report.Cases[i])
		}
	}
	return err
}

// say reports the result of a case.
func (w *run) say(c CaseResult) {
	if c.Result == Proved {
		w.Reporter.Info("%s: proved", c.ID)
		return
	}
	w.Reporter.Warn("%s: %s: %s", c.ID, ui.Words(c.Result), c.Message)
}

// take derives the result of a case from those of its specs: a spec that failed makes it failed, one
// that was not run makes it not run, and one that skipped itself makes it not possible.
func (c *CaseResult) take(specs []Spec, results map[string]SpecResult) {
	worst := Proved
	order := []string{Proved, NotPossible, NotRun, Failed}
	for _, spec := range specs {
		r, ok := results[spec.Name]
		if !ok {
			r = SpecResult{Name: spec.Name, Result: NotRun, Message: "e2e.test reported no result"}
		}
		c.Specs = append(c.Specs, r)
		c.Seconds += r.Seconds
		if slices.Index(order, r.Result) > slices.Index(order, worst) {
			worst, c.Message = r.Result, r.Message
		}
	}
	c.Result = worst
	if worst == Proved {
		c.Message = ""
	}
	if worst == NotPossible {
		c.Message = "the spec skipped itself: " + strings.TrimSpace(c.Message)
	}
}

// FailedError reports that cases failed.
type FailedError struct{ Cases []string }

func (e *FailedError) Error() string {
	return "cases failed: " + strings.Join(e.Cases, ", ")
}

// IncompleteError reports that cases were not run although the cluster could prove them, or that no case
// was proved.
type IncompleteError struct{ NotRun []string }

func (e *IncompleteError) Error() string {
	if len(e.NotRun) == 0 {
		return "no case was proved, since this cluster can prove none of them; the report has the reasons"
	}
	return "not all cases were run, and the report has the reasons: " + strings.Join(e.NotRun, ", ")
}
