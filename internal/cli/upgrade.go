package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) upgradeCommand() *cobra.Command {
	return group("upgrade", "Bring nodes to another version of Kubernetes", a.upgradeCheckCommand(),
		a.upgradeNodeCommand())
}

type upgradeOptions struct {
	cluster      clusterOptions
	kubernetes   string
	mirror       string
	noDrain      bool
	drainTimeout time.Duration
}

func (a *app) upgradeNodeCommand() *cobra.Command {
	o := &upgradeOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:   "node [NODE…]",
		Short: "Upgrade kubelet with the cluster's configuration for it",
		Long: `Brings nodes that swdt has joined to spec.kubernetes.version of the node file,
or to --kubernetes, and kubelet to the configuration that the cluster has for it
now. It checks the rules of version skew first, and whether the new programs take
the node's settings, as upgrade check does. Then it drains the node, and one
transaction replaces kubeadm, kubelet, kube-log-runner, a kube-proxy that is a
service, and the config.yaml that kubeadm upgrade node writes. If the new kubelet
does not start, or its node is not Ready, all of them are put back.

Settings of kubelet that were made on the node by hand stay, and the plan lists
them. A second run changes nothing. It never upgrades the control plane,
containerd, or programs that run in pods.`,
		Example: examples(
			"upgrade node win-1 --kubernetes 1.36.3 --dry-run", "what would change?",
			"upgrade node win-1 --kubernetes 1.36.3", "",
			"upgrade node --parallel 1", "all nodes of the node file, one after the other",
		),
		Args:              arguments(cobra.ArbitraryArgs),
		ValidArgsFunction: a.completeNodes,
		RunE:              func(cmd *cobra.Command, names []string) error { return a.runUpgradeNode(cmd.Context(), o, names) },
	}))
	o.cluster.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.kubernetes, "kubernetes", "", "`version` to upgrade to (default spec.kubernetes.version)")
	flags.StringVar(&o.mirror, "mirror", "", "`URL or folder` that everything is downloaded from instead")
	flags.BoolVar(&o.noDrain, "no-drain", false, "do not evict the node's pods first")
	flags.DurationVar(&o.drainTimeout, "drain-timeout", defaultDrainTimeout, "how long pods may take to leave")
	must(cmd.MarkFlagDirname("mirror"))
	return cmd
}

func (a *app) runUpgradeNode(ctx context.Context, o *upgradeOptions, names []string) error {
	if o.drainTimeout <= 0 {
		return usagef("--drain-timeout %s: use a positive time, such as 5m", o.drainTimeout)
	}
	if err := artifact.CheckMirror(o.mirror); err != nil {
		return usagef("--mirror %s: %v", o.mirror, err)
	}
	a.global.nodes = append(a.global.nodes, names...)
	s, err := a.begin()
	if err != nil {
		return err
	}
	for i, doc := range s.documents { // find mistakes before swdt contacts any node
		if doc, err = join.ForVersion(doc, o.kubernetes); err == nil {
			err = join.ValidateUpgrade(doc)
		}
		if err != nil {
			return err
		}
		s.documents[i] = doc
	}
	found, err := o.cluster.open()
	if err != nil {
		return err
	}
	options := join.Options{
		Cluster: found, Mirror: o.mirror, Holder: plan.Holder("upgrade"), DryRun: a.global.dryRun,
		Sources: source.NewSet(source.Options{}), Artifacts: artifact.NewStore(artifact.Options{}), Depot: s.depot(),
	}
	if !o.noDrain {
		options.Drain = &cluster.DrainOptions{Timeout: o.drainTimeout}
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (plan.Result, error) {
		result, err := join.Upgrade(ctx, n, doc, options, r)
		a.remedyAll(n.Name, result.Problems)
		return result, err
	})
	return a.printSteps(results, "the node file has no spec.kubernetes")
}
