package cli

import (
	"context"
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
)

// networkServicesOptions are the flags of network services.
type networkServicesOptions struct {
	cluster clusterOptions
	look    programmed.Options
}

func (a *app) networkServicesCommand() *cobra.Command {
	o := &networkServicesOptions{}
	cmd := forNodes(&cobra.Command{
		Use:        "services [NAME…] [flags]",
		Short:      "Compare the Services of the cluster with the HNS of each node",
		SuggestFor: []string{"svc", "loadbalancers", "endpoints"},
		Long: `Computes which load balancers and endpoints kube-proxy makes on each Windows node
for the cluster's Services, by its version and settings, and compares them with
those that HNS has: what is missing, left over or doubled, has other backends, flags
or ports, or an address that another pod has now. A finding names the clients that
notice it, the known defects of kube-proxy or Windows that have this form, and the
remedy. It changes nothing. NAME is a Service, with its namespace or without; without
a NAME, objects of no Service count too.

A difference counts if two looks one after the other have it, and the Service did
not change meanwhile: kube-proxy needs time to program a change. The settings come
from kube-proxy itself, which serves them beside its metrics on the node.

The exit code is 5 if a node has an error or a warning.`,
		Example: examples(
			"network services", "all Services on all nodes of the node file",
			"network services shop/web -n win-1", "one Service on one node",
			"network services -o json", "for scripts",
		),
		Args: arguments(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.look.Services = args
			return a.runNetworkServices(cmd.Context(), o)
		},
	})
	o.cluster.addFlags(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&o.look.Settle, "interval", programmed.DefaultSettle, "`time` between two looks at a node")
	flags.DurationVar(&o.look.Wait, waitTimeout, programmed.DefaultWait, "how long to wait until kube-proxy has synchronized")
	flags.StringVar(&o.look.MetricsURL, "metrics-url", scale.DefaultMetricsURL, "`URL` of the proxy's metrics, on the node")
	return cmd
}

// validate checks the flags and names without contacting anything.
func (o *networkServicesOptions) validate() error {
	for _, name := range o.look.Services {
		if name == "" || strings.Count(name, "/") > 1 || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") {
			return usagef("%q: write the name of a Service, such as shop/web or web", name)
		}
	}
	switch {
	case o.look.Settle < time.Second:
		return usagef("--interval %s: use at least 1s, the time between two synchronizations of kube-proxy", o.look.Settle)
	case o.look.Wait <= 0:
		return usagef("--%s %s: use a positive time, such as 1m", waitTimeout, o.look.Wait)
	}
	return checkMetricsURL(o.look.MetricsURL)
}

func (a *app) runNetworkServices(ctx context.Context, o *networkServicesOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	s, err := a.begin()
	if err != nil {
		return err
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
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (programmed.Node, error) {
		look := o.look
		look.Join = doc.Node.Spec.Kubernetes.Join
		return programmed.Look(ctx, n, look, r)
	})
	report := programmed.NewReport(results)
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	if failed == nil && report.Wrong() {
		return &exitError{code: exitFinding}
	}
	return failed
}

// askVersion checks that the API server answers, before nodes are contacted.
func (a *app) askVersion(ctx context.Context, c *cluster.Cluster) error {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	_, err := c.Version(ctx)
	return unreachable(explain(ctx, err))
}
