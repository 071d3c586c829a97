package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/proof/scale"
	"github.com/swdt-dev/swdt/internal/ui"
)

// scaleRunOptions are the flags of scale run.
type scaleRunOptions struct {
	cluster clusterOptions
	run     scale.Options
	yes     bool
}

func (a *app) scaleRunCommand() *cobra.Command {
	o := &scaleRunOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:        "run [flags]",
		Short:      "Make many Services, and measure until they are programmed",
		SuggestFor: []string{"test", "start", "bench", "benchmark"},
		Long: `Makes many Services in the cluster of the kubeconfig, and looks at each Windows node
until its HNS has all their load balancers (phase create). Then it replaces an
endpoint of some of them (churn), and removes all again (remove). The defaults are
the numbers for which SIG Windows published times.

The Services have no selector, and are all in one new namespace. The addresses of
their endpoints lead nowhere, and no traffic is sent. But each node of the cluster
programs them, also its Linux nodes, and each Service takes a cluster IP. So swdt
asks first; --yes answers, and --dry-run shows the objects and how many Services of
others the cluster has.

A Service is programmed once a look at HNS finds its load balancer with its
endpoints and no others. A look takes time on the node, so the pause after it is four
times as long; RESOLUTION is the time between two looks. kube-proxy's metrics are
read on the node. Another proxy may have none; HNS shows its work too.

The results are in the folder --out: results.json, and report.html with curves. The
exit code is 0 if all was programmed and removed, 5 if a node makes no progress for
--wait-timeout, if a Service took longer than --slow, or if kube-proxy ended, and 1 if the
run itself failed. After Ctrl-C the namespace is removed; the next run
removes that of one that was killed.`,
		Example: examples(
			"scale run", "2,000 Services with 5,000 endpoints",
			"scale run --services 200 --endpoints 500 --out before", "",
			"scale run --dry-run", "the objects that it would make",
			"scale run --slow 1m --yes", "in a script",
			"scale run --proxy antrea-agent", "another proxy that uses HNS",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runScale(cmd.Context(), o) },
	}))
	o.cluster.addFlags(cmd)
	flags := cmd.Flags()
	flags.IntVar(&o.run.Load.Services, "services", scale.DefaultServices, "`number` of Services")
	flags.IntVar(&o.run.Load.Endpoints, "endpoints", scale.DefaultEndpoints,
		"`number` of endpoints of all Services together")
	flags.IntVar(&o.run.Load.Changes, "changes", 0, fmt.Sprintf(
		"`number` of Services of which an endpoint is replaced (default %d, or all of fewer Services)",
		scale.DefaultChanges))
	flags.StringVar(&o.run.Load.Range, "range", scale.DefaultRange, "`prefix` of the addresses of the endpoints")
	flags.IntVar(&o.run.Writers, "writers", scale.DefaultWriters, "`number` of requests to the API server at a time")
	flags.Float64Var(&o.run.Rate, "rate", scale.DefaultRate, "largest `number` of requests to the API server in a "+
		"second; 0: no limit")
	flags.DurationVar(&o.run.Wait, waitTimeout, scale.DefaultWait, "how long to wait for a node that makes no progress")
	flags.DurationVar(&o.run.Slow, "slow", 0, "`duration` after which a Service that is not programmed is a failure "+
		"(default none)")
	flags.StringVar(&o.run.Proxy, "proxy", scale.DefaultProxy,
		"`name` of the proxy's process, without .exe, and of its log")
	flags.StringVar(&o.run.MetricsURL, "metrics-url", scale.DefaultMetricsURL, "`URL` of the proxy's metrics, on the node")
	flags.StringVar(&o.run.Folder, "out", "", "`folder` for the results, new or empty (default scale-DATE-TIME)")
	addYesFlag(cmd, &o.yes)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if !cmd.Flags().Changed("changes") {
			o.run.Load.Changes = min(scale.DefaultChanges, max(o.run.Load.Services, 0))
		}
		return nil
	}
	must(cmd.MarkFlagDirname("out"))
	return cmd
}

// complete checks the flags without contacting anything.
func (o *scaleRunOptions) complete(a *app, now time.Time) error {
	if err := a.global.validate(); err != nil {
		return err
	}
	if err := o.run.Load.Check(); err != nil {
		return usagef("%v", err)
	}
	switch {
	case o.run.Writers < 1 || o.run.Writers > 100:
		return usagef("--writers %d: use a number from 1 to 100", o.run.Writers)
	case !(o.run.Rate >= 0 && o.run.Rate <= 10_000):
		return usagef("--rate %g: use a number from 0 to 10000", o.run.Rate)
	case o.run.Wait <= 0:
		return usagef("--%s %s: use a positive time, such as 5m", waitTimeout, o.run.Wait)
	case o.run.Slow < 0:
		return usagef("--slow %s: use a positive time, such as 1m", o.run.Slow)
	case o.run.Proxy == "" || strings.ContainsAny(o.run.Proxy, `/\ `):
		return usagef("--proxy %q: write the name of a process, such as %s", o.run.Proxy, scale.DefaultProxy)
	}
	if err := checkMetricsURL(o.run.MetricsURL); err != nil {
		return err
	}
	o.run.Proxy = strings.TrimSuffix(o.run.Proxy, ".exe")
	if o.run.Folder == "" {
		o.run.Folder = freeName("scale-" + now.Format("20060102-150405"))
	}
	return nil
}

// checkMetricsURL checks the flag --metrics-url.
func checkMetricsURL(text string) error {
	metrics, err := url.Parse(text)
	if err != nil || metrics.Scheme != "http" || metrics.Host == "" {
		return usagef("--metrics-url %s: write a URL with http, such as %s", text, scale.DefaultMetricsURL)
	}
	return nil
}

// planScale prints the objects that a run would make. It needs no node.
func (a *app) planScale(ctx context.Context, o *scaleRunOptions) error {
	if err := o.complete(a, time.Now()); err != nil {
		return err
	}
	c, err := o.open()
	if err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	plan, err := scale.NewPlan(ctx, c, o.run.Load)
	if err != nil {
		return unreachable(explain(ctx, err))
	}
	return a.print(plan, plan.WriteText)
}

func (o *scaleRunOptions) open() (*cluster.Cluster, error) {
	return cluster.Open(cluster.Options{Kubeconfig: o.cluster.kubeconfig, Context: o.cluster.context, Unlimited: true})
}

func (a *app) runScale(ctx context.Context, o *scaleRunOptions) error {
	if a.global.dryRun {
		return a.planScale(ctx, o)
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Make %d Services with %d endpoints in a new namespace, and remove them at the end? All "+
		"nodes of the cluster program them.", o.run.Load.Services, o.run.Load.Endpoints)
	if err := canConfirm(s.options.Prompt, o.yes, question); err != nil {
		return err
	}
	if err := o.complete(a, time.Now()); err != nil {
		return err
	}
	c, err := o.open()
	if err != nil {
		return err
	}
	if err := confirm(ctx, s.options.Prompt, o.yes, question); err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	defer s.story.End()
	hangUp, err := s.connectAll(ctx, &o.run.Nodes)
	defer hangUp()
	if err != nil {
		return err
	}
	o.run.Reporter = func(name string) ui.Reporter {
		if len(s.documents) == 1 {
			name = ""
		}
		return s.story.Node(name)
	}
	report, err := scale.Run(ctx, c, o.run)
	s.story.End()
	if report.Folder == "" { // nothing was made
		return unreachable(explain(ctx, err))
	}
	return errors.Join(a.print(report, report.WriteText), scaleFailure(ctx, err))
}

// connectAll connects to all nodes, at most --parallel at a time. The function hangUp closes the
// connections, also after an error.
func (s *session) connectAll(ctx context.Context, targets *[]scale.Target) (hangUp func(), err error) {
	results := fleet.Run(ctx, s.documents, s.app.global.parallel,
		func(ctx context.Context, document config.Document) (*node.Node, error) {
			r := s.reporter(document)
			defer ui.Done(r)
			n, err := s.connect(ctx, document, r)
			return n, s.app.remedied(document.Node.Metadata.Name, explain(ctx, err))
		})
	for _, result := range results {
		if result.Err == nil {
			*targets = append(*targets, scale.Target{Name: result.Name(), Node: result.Value})
		}
	}
	return func() {
		for _, target := range *targets {
			target.Node.Leave(ctx)
		}
	}, fleet.Failures(results)
}
