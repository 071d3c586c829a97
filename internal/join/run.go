package join

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/setup"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// Run joins the document's machine: it makes the checks of package preflight and, if they find no
// error, runs Steps. If o.Drain is set, the node is drained while Steps run. If the checks find an
// error, Run changes nothing and returns a *RefusedError. The result has the problems that the
// checks found, even if Run returns an error.
func Run(ctx context.Context, n *node.Node, doc config.Document, o Options, r ui.Reporter) (plan.Result, error) {
	report, own, err := check(ctx, n, doc, o, r)
	result := plan.Result{Problems: report.Problems}
	if err != nil {
		return result, err
	}
	if o.Checked != nil {
		o.Checked(report.Problems)
	}
	if report.Failed() {
		return result, &RefusedError{report}
	}
	if err := Validate(doc, o); err != nil {
		return result, err
	}
	o.Reporter = r
	j := newJoining(n, doc, o)
	j.name = report.NodeName
	j.hasKubeProxy = hasKubeProxy(own)
	if err := j.readKubeProxy(ctx); err != nil {
		return result, err
	}
	run := plan.Options{Machine: n, DryRun: o.DryRun, AllowReboot: o.AllowReboot, Ordered: true, Holder: o.Holder}
	if o.Drain != nil && o.Cluster != nil {
		run.Around = func(ctx context.Context, apply func(context.Context) error) error {
			err := cluster.WhileDrained(ctx, o.Cluster, push.MachineOf(ctx, n, report.NodeName), *o.Drain, r, apply)
			return cluster.RemedyOtherMachine(err, "set spec.kubernetes.join.nodeName to a name that no machine has, or, if "+
				"the other machine is gone, "+remedy.KubectlCommand("delete", "node", report.NodeName))
		}
	}
	result.Steps, err = plan.Run(ctx, j.steps(), run, r)
	return result, err
}

// Check reports what would go wrong in a join, and changes nothing.
func Check(ctx context.Context, n *node.Node, doc config.Document, o Options, r ui.Reporter) (preflight.Report, error) {
	report, _, err := check(ctx, n, doc, o, r)
	return report, err
}

// check is Check, and also returns what swdt itself has put on the machine.
func check(ctx context.Context, n *node.Node, doc config.Document, o Options, r ui.Reporter) (preflight.Report,
	preflight.Own, error) {
	r.Step("looking for what would go wrong")
	own, err := Own(ctx, n)
	if err != nil {
		return preflight.Report{}, own, err
	}
	report, err := preflight.Run(ctx, preflight.Input{
		Node: n, Cluster: o.Cluster, Spec: doc.Node.Spec.Kubernetes, Own: own, MayReboot: o.AllowReboot,
	})
	return report, own, err
}

// RefusedError reports a join that did not begin because the checks found an error.
type RefusedError struct{ Report preflight.Report }

func (e *RefusedError) Error() string {
	var b strings.Builder
	if count := finding.Count(e.Report.Problems, finding.Error); count == 1 {
		b.WriteString("1 problem keeps this machine from joining; nothing was changed:")
	} else {
		fmt.Fprintf(&b, "%d problems keep this machine from joining; nothing was changed:", count)
	}
	for _, p := range e.Report.Problems {
		if p.Severity != finding.Error {
			continue
		}
		fmt.Fprintf(&b, "\n  %s: %s", p.Check, p.What)
		if p.Evidence != "" {
			b.WriteString("\n    seen: " + p.Evidence)
		}
		b.WriteString("\n    → " + p.Remedy)
	}
	b.WriteString("\n`swdt join --preflight` shows the warnings too; spec.kubernetes.join.ignorePreflightErrors " +
		"turns an error into a warning")
	return b.String()
}

// RunReset runs the steps of o.Before, the steps of Reset, and those that restore what `swdt setup` has recorded. A
// result without steps means that there is nothing to undo on the machine.
func RunReset(ctx context.Context, n *node.Node, doc config.Document, o ResetOptions, r ui.Reporter) (
	plan.Result, error) {
	j, err := newReset(n, doc, o)
	if err != nil {
		return plan.Result{}, err
	}
	own, err := Own(ctx, n)
	if err != nil {
		return plan.Result{}, err
	}
	j.hasKubeProxy = hasKubeProxy(own)
	ofSetup, err := setup.Undo(ctx, n)
	if err != nil {
		return plan.Result{}, err
	}
	steps := slices.Concat(o.Before, j.undoSteps(), ofSetup)
	done, err := plan.Run(ctx, steps, plan.Options{Machine: n, DryRun: o.DryRun, Ordered: true, Holder: o.Holder}, r)
	if err != nil && j.drained != "" {
		r.Warn("%v", &cluster.CordonedError{Node: j.drained})
	}
	if err == nil && !slices.ContainsFunc(done, func(r plan.StepResult) bool { return r.State != plan.OK }) {
		done = nil
	}
	return plan.Result{Steps: done}, err
}
