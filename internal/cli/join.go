package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/artifact"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/preflight"
	"github.com/swdt-dev/swdt/internal/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

type joinOptions struct {
	cluster      clusterOptions
	preflight    bool
	mirror       string
	allowReboot  bool
	drain        bool
	drainTimeout time.Duration
	readyTimeout time.Duration
}

func (a *app) joinCommand() *cobra.Command {
	o := &joinOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:   "join [flags]",
		Short: "Make a bare Windows machine a Ready node of a cluster",
		Long: `Makes the machine a node of the kubeconfig's cluster, as spec.kubernetes of its
node file says: the Windows feature, containerd with its configuration and
service, kubelet and kubeadm, kubelet's service, firewall, PATH and hosts file,
a bootstrap token that lives a few minutes, kubeadm join; then it waits until
the node is Ready.

Before anything is touched, node and cluster are looked at, and everything that
would go wrong is said at once (--preflight does only that; exit code 5 where it
finds an error). Each step is compared first: a second run changes nothing, a run
that was cut is finished by the next, and a change of the node file is exactly
that change. ` + "`swdt reset`" + ` takes it back.`,
		Example: examples(
			"join --kubeconfig admin.conf", "",
			"join --kubeconfig admin.conf --preflight", "what would go wrong?",
			"join --kubeconfig admin.conf --dry-run", "what would change?",
			"join --mirror ./mirror --allow-reboot", "no internet; reboot where a feature needs it",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runJoin(cmd.Context(), o) },
	}))
	flags := cmd.Flags()
	o.cluster.addFlags(cmd)
	flags.BoolVar(&o.preflight, "preflight", false, "only say what would go wrong, and change nothing")
	flags.StringVar(&o.mirror, "mirror", "", "`URL or folder` that everything is downloaded from instead")
	flags.BoolVar(&o.allowReboot, "allow-reboot", false, "reboot the node where a change needs it, wait, and go on")
	flags.BoolVar(&o.drain, "drain", false, "where the node has pods already: have them leave before anything is changed")
	flags.DurationVar(&o.drainTimeout, "drain-timeout", defaultDrainTimeout, "how long pods may take to leave")
	flags.DurationVar(&o.readyTimeout, "ready-timeout", join.DefaultReadyTimeout, "how long the node may take to be Ready")
	must(cmd.MarkFlagDirname("mirror"))
	return cmd
}

func (a *app) runJoin(ctx context.Context, o *joinOptions) error {
	if o.drainTimeout <= 0 || o.readyTimeout <= 0 {
		return usagef("--drain-timeout and --ready-timeout are positive times, such as 5m")
	}
	if err := artifact.CheckMirror(o.mirror); err != nil {
		return usagef("--mirror %s: %v", o.mirror, err)
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	found, err := a.clusterToJoin(&o.cluster)
	if err != nil {
		return err
	}
	if found == nil && o.drain {
		return usagef("--drain needs the node's cluster: name its kubeconfig with --kubeconfig or KUBECONFIG")
	}
	options := join.Options{
		Cluster: found, Mirror: o.mirror, Holder: plan.Holder("join"), ReadyTimeout: o.readyTimeout,
		Sources: source.NewSet(source.Options{}), Artifacts: artifact.NewStore(artifact.Options{}), Depot: s.depot(),
	}
	for _, doc := range s.documents { // before any node is contacted
		if _, err := join.Steps(doc, options); err != nil && (!o.preflight || found != nil) {
			return err
		} else if err != nil { // the machine can be looked at for itself
			s.story.Node(doc.Node.Metadata.Name).Warn("no cluster is at hand, and none is looked at; to join, there is missing: %v", err)
		}
	}
	if o.preflight {
		return a.runPreflight(ctx, s, found, o.allowReboot)
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (stepsOutcome, error) {
		options := options
		options.Reporter = r
		return a.joinNode(ctx, n, doc, o, options)
	})
	return a.printSteps(results, "the node file has no spec.kubernetes")
}

// clusterToJoin is nil where no kubeconfig is at hand: the node file may have
// all that a join needs.
func (a *app) clusterToJoin(o *clusterOptions) (*cluster.Cluster, error) {
	found, err := o.open()
	var none *cluster.ConfigError
	if errors.As(err, &none) && none.NothingThere() && !o.named() && a.env.Getenv("KUBECONFIG") == "" {
		return nil, nil
	}
	return found, err
}

func (a *app) joinNode(ctx context.Context, n *node.Node, doc config.Document, o *joinOptions, options join.Options) (stepsOutcome, error) {
	report, err := a.lookBefore(ctx, n, doc, options.Cluster, o.allowReboot, options.Reporter)
	outcome := stepsOutcome{Problems: report.Problems}
	if err != nil {
		return outcome, err
	}
	if report.Failed() {
		return outcome, &preflightError{report}
	}
	steps, err := join.Steps(doc, options)
	if err != nil {
		return outcome, err
	}
	run := plan.Options{
		DryRun: a.global.dryRun, AllowReboot: o.allowReboot, Ordered: true, Holder: options.Holder,
	}
	if o.drain && options.Cluster != nil {
		run.Around = drained(options.Cluster, report.NodeName, o.drainTimeout, options.Reporter)
	}
	outcome.Steps, err = plan.Run(ctx, n, steps, run, options.Reporter)
	return outcome, err
}

// lookBefore is the first phase: what would go wrong.
func (a *app) lookBefore(ctx context.Context, n *node.Node, doc config.Document, c *cluster.Cluster, mayReboot bool, r ui.Reporter) (preflight.Report, error) {
	r.Step("looking for what would go wrong")
	own, err := join.Own(ctx, n)
	if err != nil {
		return preflight.Report{}, err
	}
	report, err := preflight.Run(ctx, preflight.Input{
		Node: n, Cluster: c, Spec: doc.Node.Spec.Kubernetes, Own: own, MayReboot: mayReboot,
	})
	for i := range report.Problems {
		report.Problems[i].Remedy = a.remedies(doc.Node.Metadata.Name, report.Problems[i].Remedy)
	}
	return report, err
}

// drained has the pods of a node that exists already leave before what is done,
// and come back after.
func drained(c *cluster.Cluster, name string, timeout time.Duration, r ui.Reporter) func(context.Context, func(context.Context) error) error {
	return func(ctx context.Context, apply func(context.Context) error) error {
		r.Step("draining %s", name)
		if _, err := c.Drain(ctx, name, cluster.DrainOptions{Timeout: timeout}, r); err != nil {
			return err
		}
		if err := apply(ctx); err != nil {
			r.Warn("node %s stays cordoned, since it may not work: kubectl uncordon %s when it does", name, name)
			return err
		}
		_, err := c.Uncordon(ctx, name)
		return err
	}
}

// preflightError is a join that was not begun.
type preflightError struct{ report preflight.Report }

func (e *preflightError) Error() string {
	var b strings.Builder
	if count := e.report.Count(preflight.Error); count == 1 {
		b.WriteString("1 problem keeps this machine from joining; nothing was changed:")
	} else {
		fmt.Fprintf(&b, "%d problems keep this machine from joining; nothing was changed:", count)
	}
	for _, p := range e.report.Problems {
		if p.Severity != preflight.Error {
			continue
		}
		fmt.Fprintf(&b, "\n  %s: %s", p.Check, p.What)
		if p.Evidence != "" {
			b.WriteString("\n    seen: " + p.Evidence)
		}
		b.WriteString("\n    → " + p.Remedy)
	}
	b.WriteString("\n`swdt join --preflight` shows the warnings too; spec.kubernetes.join.ignorePreflightErrors makes an error one")
	return b.String()
}

func (a *app) runPreflight(ctx context.Context, s *session, c *cluster.Cluster, mayReboot bool) error {
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (preflight.Report, error) {
		return a.lookBefore(ctx, n, doc, c, mayReboot, r)
	})
	report := preflightReport{Nodes: []preflightNode{}}
	found := false
	for _, result := range results {
		n := preflightNode{frame: newFrame(result.Name(), resultOK, result.Err), Report: result.Value}
		switch {
		case result.Err != nil:
			n.Checks, n.Problems = []string{}, []preflight.Problem{}
		case result.Value.Failed():
			n.Result, found = "problems", true
		}
		report.Nodes = append(report.Nodes, n)
	}
	err := a.print(report, report.writeText)
	if err == nil {
		err = fleet.Failures(results)
	}
	if err == nil && found {
		return &exitError{code: exitFinding}
	}
	return err
}

type preflightReport struct {
	Nodes []preflightNode `json:"nodes"`
}

type preflightNode struct {
	frame // its result: ok, problems or failed
	preflight.Report
}

func (r preflightReport) writeText(w *ui.Page) error {
	for _, n := range r.Nodes {
		if n.Result == "failed" {
			continue // the error says why
		}
		if err := n.WriteText(w, n.Name); err != nil {
			return err
		}
	}
	return nil
}
