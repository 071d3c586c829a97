package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/proof/evidence"
	"github.com/swdt-dev/swdt/internal/proof/leftover"
	"github.com/swdt-dev/swdt/internal/proof/suite"
	"github.com/swdt-dev/swdt/internal/proof/verdict"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

// Until is the condition on which repetition ends.
type Until string

// The conditions.
const (
	AllRuns   Until = ""     // all runs were made
	FirstFail Until = "fail" // a spec has failed
	FirstPass Until = "pass" // all specs have passed in one run
)

// Options configure a command.
type Options struct {
	Source    Source
	Set       string // the name of a named set, for the report; Selection has its filters
	Selection suite.Selection
	// Known has the specs that Selection matches, from an earlier list of the same program; nil: they are
	// listed, which takes seconds.
	Known *suite.Listing
	// Kubeconfig and Context select the cluster for e2e.test: a path and a name.
	Kubeconfig, Context string
	// Folder is an empty folder for the results; it is made if it does not exist.
	Folder string
	// Runs is the number of runs; if Until is set, it is the maximum. 0: one run.
	Runs  int
	Until Until
	// Taints are keys of taints of nodes on which the specs do not have to run.
	Taints []string
	// RepoList is a file with the registries of test images; "": those of Kubernetes, or what
	// KUBE_TEST_REPO_LIST names.
	RepoList string
	// Flags are more flags of e2e.test, after swdt's own.
	Flags []string
	// SkipChecks runs the specs whatever the checks find. e2e.test then waits for no node, either.
	SkipChecks bool
	// Evidence says how evidence of failed specs is collected; nil: none is.
	Evidence *evidence.Options
	// Records are the records of runs; nil: this user's.
	Records *leftover.Store
	// History is the file with the durations of earlier runs; "": in the user's cache.
	History string
	// Reporter gets the progress; nil: nothing is reported.
	Reporter ui.Reporter
}

// NoSpecsError reports that no spec matches the filters.
type NoSpecsError struct {
	Selection suite.Selection
	Binary    suite.Binary
	Total     int // the number of all specs
}

func (e *NoSpecsError) Error() string {
	return fmt.Sprintf("none of the %d specs of e2e.test %s matches %s; `swdt e2e list` shows those that match a filter",
		e.Total, e.Binary.Version, words(e.Selection))
}

func words(s suite.Selection) string {
	var parts []string
	for _, focus := range s.Focus {
		parts = append(parts, fmt.Sprintf("--focus %q", focus))
	}
	for _, skip := range s.Skip {
		parts = append(parts, fmt.Sprintf("--skip %q", skip))
	}
	if s.LabelFilter != "" {
		parts = append(parts, fmt.Sprintf("--label-filter %q", s.LabelFilter))
	}
	if len(parts) == 0 {
		return "e2e.test's default filters"
	}
	return strings.Join(parts, " ")
}

// UnfitError reports that the cluster cannot run the specs.
type UnfitError struct{ Findings []finding.Problem }

func (e *UnfitError) Error() string {
	var what []string
	for _, f := range e.Findings {
		if f.Severity == finding.Error {
			what = append(what, f.What+"; "+f.Remedy)
		}
	}
	return "the cluster cannot run the specs: " + strings.Join(what, "; ") + " (--skip-checks runs them all the same)"
}

// Plan has the specs that a command would run.
type Plan struct {
	Cluster    string            `json:"cluster"`    // the API server's URL; "" if it was not needed
	Kubernetes string            `json:"kubernetes"` // its version
	Binary     suite.Binary      `json:"binary"`
	Set        string            `json:"set"`
	Selection  suite.Selection   `json:"selection"`
	Total      int               `json:"total"` // the number of all specs of the program
	Findings   []finding.Problem `json:"findings"`
	Specs      []suite.Spec      `json:"specs"`

	noNodes bool // no node is Ready
}

// List returns the specs that match, without the checks. It contacts the cluster only for the version of
// the program to use. The error is a *NoSpecsError if no spec matches.
func List(ctx context.Context, c *cluster.Cluster, o Options) (Plan, error) {
	o = o.completed()
	defer ui.Done(o.Reporter)
	p := Plan{Set: o.Set, Selection: o.Selection, Findings: []finding.Problem{}}
	var err error
	if o.Source.NeedsVersion() {
		p.Cluster = c.Server()
		if p.Kubernetes, err = c.Version(ctx); err != nil {
			return p, err
		}
	}
	return p, o.list(ctx, &p)
}

func (o Options) list(ctx context.Context, p *Plan) (err error) {
	if err := o.Selection.Check(); err != nil {
		return err
	}
	if p.Binary, err = o.Source.find(ctx, p.Kubernetes, o.Reporter); err != nil {
		return err
	}
	listing, err := o.listing(ctx, p.Binary)
	if err != nil {
		return err
	}
	p.Specs, p.Total = listing.Specs, listing.Total
	if len(p.Specs) == 0 {
		return &NoSpecsError{Selection: o.Selection, Binary: p.Binary, Total: p.Total}
	}
	return nil
}

func (o Options) listing(ctx context.Context, b suite.Binary) (suite.Listing, error) {
	if o.Known != nil {
		return *o.Known, nil
	}
	o.Reporter.Step("listing the specs of e2e.test %s", b.Version)
	return b.List(ctx, o.Selection)
}

// Prepare returns the specs that Run would run, and the findings of the checks. It changes nothing in
// the cluster.
func Prepare(ctx context.Context, c *cluster.Cluster, o Options) (Plan, error) {
	o = o.completed()
	defer ui.Done(o.Reporter)
	p := Plan{Cluster: c.Server(), Set: o.Set, Selection: o.Selection, Findings: []finding.Problem{}}
	var err error
	if p.Kubernetes, err = c.Version(ctx); err != nil {
		return p, err
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return p, err
	}
	if err := o.list(ctx, &p); err != nil {
		return p, err
	}
	p.noNodes = !slices.ContainsFunc(nodes, func(n cluster.Node) bool { return n.Ready })
	p.Findings = append(p.Findings, check(facts{nodes: nodes, kubernetes: p.Kubernetes, binary: p.Binary,
		kubectl: hasKubectl()})...)
	return p, nil
}

func (o Options) completed() Options {
	if o.Reporter == nil {
		o.Reporter = ui.Discard{}
	}
	if o.Runs < 1 {
		o.Runs = 1
	}
	if len(o.Taints) == 0 {
		o.Taints = strings.Split(DefaultTaints, ",")
	}
	if o.History == "" {
		o.History = defaultHistory()
	}
	return o
}

// Run runs the specs, judges them, and writes the report into o.Folder. It removes the namespaces of its
// runs, and those of earlier runs that were killed. The error is nil if the runs themselves were in
// order, whatever the verdicts. It is a *NoSpecsError or an *UnfitError if nothing was run.
func Run(ctx context.Context, c *cluster.Cluster, o Options) (verdict.Report, error) {
	o = o.completed()
	report := verdict.Report{Result: verdict.HarnessFailed, Begin: time.Now().UTC(), Cluster: c.Server()}
	plan, err := Prepare(ctx, c, o)
	report = withPlan(report, plan)
	if err != nil {
		return report, err
	}
	if finding.Has(plan.Findings, finding.Error) && !o.SkipChecks {
		return report, &UnfitError{Findings: plan.Findings}
	}
	if o.Records == nil {
		if o.Records, err = leftover.OpenDefault(); err != nil {
			return report, err
		}
	}
	if report.Folder, err = localfile.EmptyFolder(o.Folder); err != nil {
		return report, err
	}
	defer ui.Done(o.Reporter)
	defer interrupt.AllowTime(ctx, suite.DefaultGrace+leftover.Limit+5*time.Second)()
	report.Leftovers = o.Records.Tidy(ctx, c, o.Reporter)
	o.Reporter.Info("%d of %d specs of e2e.test %s match", len(plan.Specs), plan.Total, plan.Binary.Version)
	t := &trial{Options: o, c: c, plan: plan, report: &report, history: openHistory(o.History)}
	runs, err := t.runs(ctx)
	report.Seconds = time.Since(report.Begin).Seconds()
	report = report.Judged(runs, err)
	for _, bundles := range t.bundles {
		report.AddEvidence(bundles)
	}
	if err == nil && report.Summary.NotRun > 0 {
		err = fmt.Errorf("%d of %d specs were not run; see the output in %s", report.Summary.NotRun,
			report.Summary.Total(), report.Folder)
		report.Error = err.Error()
	}
	return report, errors.Join(err, report.Save())
}

func withPlan(r verdict.Report, p Plan) verdict.Report {
	r.Kubernetes, r.Binary, r.Set, r.Selection, r.Total = p.Kubernetes, p.Binary, p.Set, p.Selection, p.Total
	r.Findings = p.Findings
	return r
}

// trial is a command at work.
type trial struct {
	Options
	c       *cluster.Cluster
	plan    Plan
	report  *verdict.Report
	history history
	bundles []map[string]evidence.Bundle // of each run, by the name of the spec
}

// runs makes the runs and returns their reports, including the report of a run that failed.
func (t *trial) runs(ctx context.Context) (all []suite.Report, err error) {
	for n := 1; n <= t.Runs; n++ {
		label := ""
		if t.Runs > 1 {
			label = fmt.Sprintf("run %d of %d: ", n, t.Runs)
		}
		run, err := t.run(ctx, n, label)
		all = append(all, run)
		t.history.add(run)
		t.history.save()
		if err != nil || t.enough(run) {
			return all, err
		}
	}
	return all, nil
}

// enough reports whether the condition that ends the repetition holds after this run.
func (t *trial) enough(r suite.Report) bool {
	failed := false
	for _, result := range r.Results {
		failed = failed || result.Outcome != suite.Passed && result.Outcome != suite.Skipped
	}
	return t.Until == FirstFail && failed || t.Until == FirstPass && !failed
}

// run makes one run, and removes the namespaces that it leaves.
func (t *trial) run(ctx context.Context, n int, label string) (report suite.Report, err error) {
	folder := filepath.Join(t.report.Folder, fmt.Sprintf("run-%d", n))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return suite.Report{}, fmt.Errorf("make the folder of a run: %w", err)
	}
	record, err := t.Records.Begin(t.c.Server(), filepath.Join(folder, suite.OutputName))
	if err != nil {
		return suite.Report{}, err
	}
	defer func() {
		removed, failed := record.End(ctx, t.c)
		t.report.Leftovers = append(t.report.Leftovers, removed...)
		err = errors.Join(err, failed)
	}()
	shown := newDisplay(t.Reporter, t.plan.Specs, t.history, label)
	recorder, err := t.beginEvidence(filepath.Join(folder, suite.OutputName))
	if err != nil {
		return suite.Report{}, err
	}
	report, err = t.plan.Binary.Run(ctx, suite.RunOptions{
		Selection: t.Selection, Specs: t.plan.Specs, Kubeconfig: t.Kubeconfig, Context: t.Context, Folder: folder,
		Flags: t.flags(), Hold: record.Lock(), Progress: func(p suite.Progress) {
			shown.show(p)
			recorder.take(p)
		},
	})
	return report, errors.Join(err, t.endEvidence(ctx, recorder, n, report))
}

// flags returns the flags of e2e.test for Windows nodes.
func (t *trial) flags() []string {
	flags := []string{"--provider=skeleton", "--node-os-distro=windows",
		"--non-blocking-taints=" + strings.Join(t.Taints, ",")}
	if t.SkipChecks {
		flags = append(flags, "--allowed-not-ready-nodes=-1")
		if t.plan.noNodes { // without a number, e2e.test counts the nodes, and fails if there are none
			flags = append(flags, "--num-nodes=0")
		}
	}
	if t.RepoList != "" {
		flags = append(flags, "--kube-test-repo-list="+t.RepoList)
	}
	return append(flags, t.Flags...)
}
