package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/programmed"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/proof/scale"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// networkServicesOptions are the flags of network services.
type networkServicesOptions struct {
	cluster  clusterOptions
	look     programmed.Options
	fix, yes bool
}

func (a *app) networkServicesCommand() *cobra.Command {
	o := &networkServicesOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:        "services [NAME…] [flags]",
		Short:      "Compare the Services of the cluster with the HNS of each node",
		SuggestFor: []string{"svc", "loadbalancers", "endpoints"},
		Long: `Computes which load balancers and endpoints kube-proxy makes on each Windows
node for the cluster's Services, by its version and settings, and compares them
with those that HNS has: what is missing, left over or doubled, has other
backends, flags or ports, or an address that another pod has now. A finding
names the clients that notice it, the known defects of kube-proxy or Windows
that have this form, and the remedy. Without --fix it changes nothing. NAME is a
Service, with its namespace or without; without a NAME, objects of no Service
count too.

A difference counts if two looks one after the other have it, and the Service
did not change meanwhile: kube-proxy needs time to program a change. The
settings come from kube-proxy itself, which serves them beside its metrics on
the node.

--fix removes the load balancers and endpoints that are wrong, and has
kube-proxy program the Services again whose load balancers are missing or wrong:
it changes the annotation winProxyOptimization of the Service, and changes it
back. It asks first; --dry-run shows the steps and the connections that they
break. It looks again before it removes objects from a node and at the end. If
kube-proxy synchronizes at that look, or does not serve its settings, it removes
nothing. It removes no load balancer of no Service unless an object shows that
kube-proxy made it, and no endpoint that a load balancer names.

The exit code is 5 if a node has an error or a warning.`,
		Example: examples(
			"network services", "all Services on all nodes of the node file",
			"network services shop/web -n win-1", "one Service on one node",
			"network services --fix --dry-run", "the steps of a repair",
			"network services --fix", "repair after a question",
			"network services -o json", "for scripts",
		),
		Args: arguments(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.look.Services = args
			return a.runNetworkServices(cmd.Context(), o)
		},
	}))
	addYesFlag(cmd, &o.yes)
	o.cluster.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.fix, "fix", false, "remove what is wrong, and have kube-proxy make what is missing")
	flags.DurationVar(&o.look.Settle, "interval", programmed.DefaultSettle, "`time` between two looks at a node")
	flags.DurationVar(&o.look.Wait, waitTimeout, programmed.DefaultWait, "how long to wait until kube-proxy has synchronized")
	flags.StringVar(&o.look.MetricsURL, "metrics-url", scale.DefaultMetricsURL, "`URL` of the proxy's metrics, on the node")
	return cmd
}

// validate checks the flags and names without contacting anything.
func (o *networkServicesOptions) validate(a *app) error {
	for _, name := range o.look.Services {
		if name == "" || strings.Count(name, "/") > 1 || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") {
			return usagef("%q: write the name of a Service, such as shop/web or web", name)
		}
	}
	switch {
	case a.global.dryRun && !o.fix:
		return usagef("--dry-run goes with --fix: without it, nothing is changed")
	case o.yes && !o.fix:
		return usagef("--yes goes with --fix: without it, nothing is changed")
	case o.look.Settle < time.Second:
		return usagef("--interval %s: use at least 1s, the time between two synchronizations of kube-proxy", o.look.Settle)
	case o.look.Wait <= 0:
		return usagef("--%s %s: use a positive time, such as 1m", waitTimeout, o.look.Wait)
	}
	return checkMetricsURL(o.look.MetricsURL)
}

func (a *app) runNetworkServices(ctx context.Context, o *networkServicesOptions) error {
	if err := o.validate(a); err != nil {
		return err
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	if o.fix {
		if err := canConfirm(s.options.Prompt, o.yes || a.global.dryRun, "Repair what the nodes have programmed?"); err != nil {
			return err
		}
	}
	c, err := o.cluster.open()
	if err != nil {
		return err
	}
	if err := a.askVersion(ctx, c); err != nil {
		return err
	}
	s.quiet = true
	o.look.Source = programmed.NewSource(c.Clientset())
	if err := o.checkServices(ctx, a); err != nil {
		return err
	}
	results := o.lookAt(ctx, s)
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	report := programmed.NewReport(results)
	if o.fix {
		return a.fixServices(ctx, o, s, c, results)
	}
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	if failed == nil && report.Wrong() {
		return &exitError{code: exitFinding}
	}
	return failed
}

// checkServices returns an error if the cluster lacks a Service that a NAME names.
func (o *networkServicesOptions) checkServices(ctx context.Context, a *app) error {
	if len(o.look.Services) == 0 {
		return nil
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	unknown, err := o.look.Source.Unknown(ctx, o.look.Services)
	if err != nil {
		return explain(ctx, err)
	}
	if len(unknown) > 0 {
		return usagef("the cluster has no Service %s; `kubectl get services -A` lists them", strings.Join(unknown, ", "))
	}
	return nil
}

// lookAt compares all nodes of a session with the cluster.
func (o *networkServicesOptions) lookAt(ctx context.Context, s *session) []fleet.Result[programmed.Node] {
	return onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (programmed.Node, error) {
		look := o.look
		look.Join = doc.Node.Spec.Kubernetes.Join
		return programmed.Look(ctx, n, look, r)
	})
}

// fixServices repairs what a look has found, and looks again at the nodes that answered.
func (a *app) fixServices(ctx context.Context, o *networkServicesOptions, s *session, c *cluster.Cluster,
	results []fleet.Result[programmed.Node]) error {
	found := programmed.NewReport(results)
	plan := programmed.RepairReport{Repairs: programmed.Plan(found), Nodes: found.Nodes}
	if len(plan.Repairs) == 0 || a.global.dryRun {
		return errors.Join(fleet.Failures(results), a.print(plan, plan.WriteText), wrongServices(found, a.global.dryRun))
	}
	if !o.yes {
		page := ui.NewPage(a.streams.Err, false)
		if err := errors.Join(plan.WriteText(page), page.Flush()); err != nil {
			return err
		}
	}
	question := "Take these " + finding.Several(len(plan.Repairs), "step") + "?"
	if err := confirm(ctx, s.options.Prompt, o.yes, question); err != nil {
		return err
	}
	removed, removals := a.removeObjects(ctx, o, s, plan.Repairs)
	touched, touchErr := a.touchServices(ctx, o, c, plan.Repairs, removals)
	results = o.lookAgain(ctx, s, results)
	report := programmed.NewReport(results)
	after := programmed.RepairReport{Repairs: programmed.Verify(append(removals, touched...), report), Nodes: report.Nodes}
	return errors.Join(fleet.Failures(withErrors(results, removed)), touchErr, a.print(after, after.WriteText),
		wrongServices(report, false))
}

// lookAgain replaces the results of the nodes that answered.
func (o *networkServicesOptions) lookAgain(ctx context.Context, s *session, before []fleet.Result[programmed.Node],
) []fleet.Result[programmed.Node] {
	again := map[string]fleet.Result[programmed.Node]{}
	for _, result := range o.lookAt(ctx, s.only(func(name string) bool {
		return slices.ContainsFunc(before, func(r fleet.Result[programmed.Node]) bool { return r.Name() == name && r.Err == nil })
	})) {
		again[result.Name()] = result
	}
	after := slices.Clone(before)
	for i, result := range before {
		if now, ok := again[result.Name()]; ok {
			after[i] = now
		}
	}
	return after
}

// withErrors returns results with the errors of the removals before: a node has one error, which is the first.
func withErrors(results []fleet.Result[programmed.Node], removed []fleet.Result[[]programmed.Repair]) []fleet.Result[programmed.Node] {
	results = slices.Clone(results)
	for i := range results {
		for _, r := range removed {
			if r.Name() == results[i].Name() && r.Err != nil {
				results[i].Err = r.Err
			}
		}
	}
	return results
}

// wrongServices returns the exit code for a report with findings.
func wrongServices(r programmed.Report, dryRun bool) error {
	if !dryRun && r.Wrong() {
		return &exitError{code: exitFinding}
	}
	return nil
}

// removeObjects removes the wrong objects from the nodes that have some. It returns all steps, with their results.
func (a *app) removeObjects(ctx context.Context, o *networkServicesOptions, s *session, plan []programmed.Repair,
) (results []fleet.Result[[]programmed.Repair], steps []programmed.Repair) {
	of := map[string][]programmed.Repair{}
	for _, name := range s.names() {
		of[name] = programmed.RemovalsOf(plan, name)
	}
	results = onNodes(ctx, s.only(func(name string) bool { return len(of[name]) > 0 }),
		func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) ([]programmed.Repair, error) {
			look := o.look
			look.Join = doc.Node.Spec.Kubernetes.Join
			return nil, programmed.Remove(ctx, n, look, of[doc.Node.Metadata.Name], r)
		})
	for _, result := range results {
		steps = append(steps, of[result.Name()]...)
	}
	return results, steps
}

// touchServices has kube-proxy program the Services of a plan again, after objects of them were removed.
func (a *app) touchServices(ctx context.Context, o *networkServicesOptions, c *cluster.Cluster, plan, removals []programmed.Repair,
) ([]programmed.Repair, error) {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	story := a.newStory()
	defer story.End()
	return programmed.Touch(ctx, c.Clientset(), o.look, plan, removals, story.Node(""))
}

// askVersion checks that the API server answers, before nodes are contacted.
func (a *app) askVersion(ctx context.Context, c *cluster.Cluster) error {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	_, err := c.Version(ctx)
	return unreachable(explain(ctx, err))
}
