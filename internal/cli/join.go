package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/finding"
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
		Long: `Makes the machine a node of the cluster of the kubeconfig, by spec.kubernetes of
its node file: the Windows feature, containerd with its configuration and
service, kubelet and kubeadm, the kubelet's service, firewall, PATH and hosts
file, a bootstrap token that lives a few minutes, kubeadm join. Then it waits
until the node is Ready.

Before it changes anything, it checks node and cluster and lists all problems at
once (--preflight does only that; exit code 5 if it finds an error). Each step
compares first: a second run changes nothing, the next run finishes an
interrupted one, and a change of the node file makes exactly that change.
` + "`swdt reset`" + ` undoes the join.`,
		Example: examples(
			"join --kubeconfig admin.conf", "",
			"join --kubeconfig admin.conf --preflight", "what would go wrong?",
			"join --kubeconfig admin.conf --dry-run", "what would change?",
			"join --mirror ./mirror --allow-reboot", "no internet; reboot if a feature needs it",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runJoin(cmd.Context(), o) },
	}))
	flags := cmd.Flags()
	o.cluster.addFlags(cmd)
	flags.BoolVar(&o.preflight, "preflight", false, "only report what would go wrong, and change nothing")
	flags.StringVar(&o.mirror, "mirror", "", "`URL or folder` that everything is downloaded from instead")
	flags.BoolVar(&o.allowReboot, "allow-reboot", false, "reboot the node if a change needs it, wait, and go on")
	flags.BoolVar(&o.drain, "drain",
		false, "if the node already has pods: evict them before anything is changed")
	flags.DurationVar(&o.drainTimeout, "drain-timeout", defaultDrainTimeout, "how long pods may take to leave")
	flags.DurationVar(&o.readyTimeout, "ready-timeout", join.DefaultReadyTimeout,
		"how long the node may take to be Ready")
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
		DryRun: a.global.dryRun, AllowReboot: o.allowReboot, FindPodNetwork: findPodNetwork,
	}
	if o.drain {
		options.Drain = &cluster.DrainOptions{Timeout: o.drainTimeout}
	}
	for _, doc := range s.documents { // find mistakes before swdt contacts any node
		if err := join.Validate(doc, options); err != nil && (!o.preflight || found != nil) {
			return err
		} else if err != nil { // the machine can be examined without a cluster
			s.story.Node(doc.Node.Metadata.Name).Warn("no cluster is given, so only the machine is examined; a join "+
				"also needs: %v", err)
		}
	}
	if o.preflight {
		return a.runPreflight(ctx, s, options)
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (plan.Result, error) {
		result, err := join.Run(ctx, n, doc, options, r)
		a.remedyAll(n.Name, result.Problems)
		return result, err
	})
	return a.printSteps(results, "the node file has no spec.kubernetes")
}

// calicoEndpoint is the endpoint of a node itself in the overlay network of Calico. Published scripts take kube-proxy's
// source address from it (github.com/kubernetes-sigs/sig-windows-tools 401ee6f, hostprocess/calico/kube-proxy/start.ps1).
const calicoEndpoint = "Calico_ep"

// findPodNetwork finds the HNS network of the pods on a node for join.Options.
func findPodNetwork(ctx context.Context, n *node.Node, name string) (join.PodNetwork, bool, error) {
	found, err := hns.FindNetwork(ctx, n.Compute, name)
	var none *hns.NoNetworkError
	if errors.As(err, &none) {
		return join.PodNetwork{}, false, nil
	}
	network := join.PodNetwork{Type: found.Type}
	if len(found.Subnets) > 0 {
		network.Subnet = found.Subnets[0].Prefix
	}
	if err != nil || !strings.EqualFold(found.Type, "overlay") {
		return network, err == nil, err
	}
	endpoints, err := hns.ReadEndpoints(ctx, n.Compute)
	for _, e := range endpoints {
		if e.Network == found.ID && e.Name == calicoEndpoint {
			network.SourceVIP = e.IP()
		}
	}
	return network, err == nil, err
}

// clusterToJoin returns the cluster. It returns nil if no kubeconfig is named and the default one
// does not exist: the node file may have all that a join needs.
func (a *app) clusterToJoin(o *clusterOptions) (*cluster.Cluster, error) {
	found, err := o.open()
	var none *cluster.ConfigError
	if errors.As(err, &none) && none.NothingThere() && !o.named() && a.env.Getenv("KUBECONFIG") == "" {
		return nil, nil
	}
	return found, err
}

// remedyAll renders the commands in the problems' remedies, for this node.
func (a *app) remedyAll(node string, problems []finding.Problem) {
	for i := range problems {
		problems[i].Remedy = a.remedies(node, problems[i].Remedy)
	}
}

func (a *app) runPreflight(ctx context.Context, s *session, options join.Options) error {
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (preflight.Report, error) {
		report, err := join.Check(ctx, n, doc, options, r)
		a.remedyAll(n.Name, report.Problems)
		return report, err
	})
	report := preflight.NewFleetReport(results)
	err := a.print(report, report.WriteText)
	if err == nil {
		err = fleet.Failures(results)
	}
	if err == nil && report.Failed() {
		return &exitError{code: exitFinding}
	}
	return err
}
