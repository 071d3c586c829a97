package cli

import (
	"context"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/rollout/waves"
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
	// The gates between several nodes.
	maxUnavailable, canary string
	pause                  time.Duration
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

Several nodes are upgraded in waves, with the gates of a NodeRollout: at most
--max-unavailable of them are drained, cordoned or not Ready at once, none begins
after a failure, and --canary with --pause waits after the first ones. The same
command goes on with the nodes that remain. One node has no gates.

Settings of kubelet that were made on the node by hand stay, and the plan lists
them. A second run changes nothing. It never upgrades the control plane,
containerd, or programs that run in pods.`,
		Example: examples(
			"upgrade node win-1 --kubernetes 1.36.3 --dry-run", "what would change?",
			"upgrade node win-1 --kubernetes 1.36.3", "",
			"upgrade node", "all nodes of the node file, one after the other",
			"upgrade node --canary 1 --pause 1h --max-unavailable 20%", "",
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
	flags.StringVar(&o.maxUnavailable, "max-unavailable", "1", "nodes that may be unavailable at once: a `number` or a percentage")
	flags.StringVar(&o.canary, "canary", "", "pause after this `number` or percentage of the nodes")
	flags.DurationVar(&o.pause, "pause", 0, "how long to pause after the nodes of --canary")
	must(cmd.MarkFlagDirname("mirror"))
	return cmd
}

func (a *app) runUpgradeNode(ctx context.Context, o *upgradeOptions, names []string) error {
	if o.drainTimeout <= 0 {
		return usagef("--drain-timeout %s: use a positive time, such as 5m", o.drainTimeout)
	}
	gates, err := o.gates()
	if err != nil {
		return err
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
	upgrade := func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (plan.Result, error) {
		result, err := join.Upgrade(ctx, n, doc, options, r)
		a.remedyAll(n.Name, result.Problems)
		return result, err
	}
	var results []fleet.Result[plan.Result]
	if len(s.documents) == 1 || options.DryRun {
		results = onNodes(ctx, s, upgrade)
	} else if results, err = inWaves(ctx, s, found, gates, upgrade); err != nil {
		return err
	}
	return a.printSteps(results, "the node file has no spec.kubernetes")
}

// gates returns the gates between several nodes.
func (o *upgradeOptions) gates() (waves.Options, error) {
	var gates waves.Options
	for _, flag := range []struct {
		name, value string
		to          *intstr.IntOrString
	}{{"--max-unavailable", o.maxUnavailable, &gates.MaxUnavailable}, {"--canary", o.canary, &gates.Canary.Nodes}} {
		if flag.value == "" && flag.to == &gates.Canary.Nodes {
			continue
		}
		if !nodesShare().MatchString(flag.value) {
			return gates, usagef("%s %s: write a number of nodes, such as 2, or a percentage, such as 20%%", flag.name, flag.value)
		}
		*flag.to = intstr.Parse(flag.value)
	}
	switch {
	case o.pause < 0:
		return gates, usagef("--pause %s: use a positive time, such as 1h", o.pause)
	case (o.pause > 0) != (o.canary != ""):
		return gates, usagef("--canary and --pause belong together: write, for example, --canary 1 --pause 1h")
	case o.pause > 0:
		gates.Canary.Pause = fleetv1.Duration(o.pause.String())
	}
	return gates, nil
}

// nodesShare matches a number of nodes above 0, or a percentage of 1 to 100.
func nodesShare() *regexp.Regexp { return regexp.MustCompile(`^([1-9][0-9]{0,5}|([1-9][0-9]?|100)%)$`) }

// inWaves does the work on the nodes in waves. First it contacts all of them and reads their Nodes, so that a node that
// cannot be reached, or has no Node, is known before another one has changed.
func inWaves(ctx context.Context, s *session, c *cluster.Cluster, gates waves.Options,
	work func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (plan.Result, error),
) ([]fleet.Result[plan.Result], error) {
	defer s.story.End()
	ctx, cancel := s.app.global.bounded(ctx)
	defer cancel()
	found := fleet.Run(ctx, s.documents, s.app.global.parallel, func(ctx context.Context, doc config.Document) (string, error) {
		return workOn(ctx, s, doc, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (string, error) {
			name, err := n.ObjectName(ctx, doc.Node.Spec.Kubernetes.Join)
			if err != nil {
				return "", err
			}
			is, err := c.Node(ctx, name)
			if err == nil && !is.Exists {
				err = &join.NoNodeError{Node: name}
			}
			return name, err
		})
	})
	if err := fleet.Failures(found); err != nil {
		return nil, err
	}
	gates.Waits = func(why string) { s.story.Node("").Step("waiting: %s", why) }
	gates.Look = func(ctx context.Context) (all []rollout.Node, err error) {
		for _, doc := range found {
			is, err := c.Node(ctx, doc.Value)
			if err != nil {
				return nil, err
			}
			all = append(all, rollout.Node{Name: doc.Name(), Ready: is.Ready, Cordoned: is.Cordoned})
		}
		return all, nil
	}
	results, at := make([]fleet.Result[plan.Result], len(s.documents)), map[string]int{}
	var names []string
	for i, doc := range s.documents {
		names, at[doc.Node.Metadata.Name], results[i].Document = append(names, doc.Node.Metadata.Name), i, doc
	}
	errs := waves.Run(ctx, names, gates, func(ctx context.Context, name string) error {
		i := at[name]
		results[i] = fleet.Run(ctx, []config.Document{s.documents[i]}, 1, func(ctx context.Context, doc config.Document) (plan.Result, error) {
			return workOn(ctx, s, doc, work)
		})[0]
		return results[i].Err
	})
	for i, name := range names {
		results[i].Err = errs[name]
	}
	return results, nil
}
