package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/trace"
	"github.com/swdt-dev/swdt/internal/ui"
)

type resetOptions struct {
	cluster      clusterOptions
	noDrain      bool
	deleteNode   bool
	drainTimeout time.Duration
	yes          bool
}

func (a *app) resetCommand() *cobra.Command {
	o := &resetOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:        "reset [flags]",
		Short:      "Undo what swdt join and setup recorded on nodes",
		SuggestFor: []string{"leave", "unjoin", "uninstall", "delete"},
		Long: `Undoes what ` + "`swdt join`" + ` did, in reverse order, by the join's record on the node:
files and settings of others stay. It also restores the registry values, the
update policy and the exclusions of Microsoft Defender that ` + "`swdt setup`" + ` has
changed. It drains the node first, unless --no-drain is set; --delete-node
removes the Node object. Logs and Windows features stay. A second run finds
nothing to do.

It asks first, unless --yes or --dry-run is set; without a terminal it requires
one of these flags.`,
		Example: examples(
			"reset --kubeconfig admin.conf --delete-node", "leave the cluster",
			"reset --no-drain --yes", "the cluster is gone already; do not ask",
			"reset --no-drain --dry-run", "what would be removed",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runReset(cmd.Context(), o) },
	}))
	o.cluster.addFlags(cmd)
	cmd.Flags().BoolVar(&o.noDrain, "no-drain", false, "do not evict the node's pods first")
	cmd.Flags().BoolVar(&o.deleteNode, "delete-node", false, "remove the Node object from the cluster")
	addYesFlag(cmd, &o.yes)
	cmd.Flags().DurationVar(&o.drainTimeout, "drain-timeout", defaultDrainTimeout, "how long pods may take to leave")
	return cmd
}

func (a *app) runReset(ctx context.Context, o *resetOptions) error {
	if o.drainTimeout <= 0 {
		return usagef("--drain-timeout %s: use a positive time, such as 5m", o.drainTimeout)
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	question, answered := "Undo what swdt join and swdt setup recorded on "+whichNodes(s.documents)+"?", o.yes || a.global.dryRun
	if err := canConfirm(s.options.Prompt, answered, question); err != nil {
		return err
	}
	options, err := a.resetIn(o)
	if err != nil {
		return err
	}
	if err := confirm(ctx, s.options.Prompt, answered, question); err != nil {
		return err
	}
	options.DryRun = a.global.dryRun
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (plan.Result, error) {
		options := options
		// Restore the settings that a trace has changed before reset removes the things that
		// join installed.
		options.Before = trace.Off(n, trace.Options{NoRestart: true, Holder: options.Holder})
		return join.RunReset(ctx, n, doc, options, r)
	})
	return a.printSteps(results, "this machine has no record of swdt join or swdt setup")
}

// resetIn returns the options of a reset, with the cluster if the reset needs one.
func (a *app) resetIn(o *resetOptions) (join.ResetOptions, error) {
	options := join.ResetOptions{DeleteNode: o.deleteNode, Holder: plan.Holder("reset")}
	if o.noDrain && !o.deleteNode && !o.cluster.named() {
		return options, nil
	}
	found, err := a.clusterToJoin(&o.cluster)
	switch {
	case err != nil:
		return options, err
	case found == nil && o.deleteNode:
		return options, usagef("--delete-node needs the cluster: name its kubeconfig with --kubeconfig or KUBECONFIG")
	case found == nil:
		return options,
			usagef("to drain the node, name the cluster's kubeconfig with --kubeconfig or KUBECONFIG; or " +
				"use --no-drain")
	}
	options.Cluster = found
	if !o.noDrain {
		options.Drain = &cluster.DrainOptions{Timeout: o.drainTimeout}
	}
	return options, nil
}

// whichNodes returns the words for these nodes in a question.
func whichNodes(documents []config.Document) string {
	var all []string
	for _, document := range documents {
		all = append(all, document.Node.Metadata.Name)
	}
	if len(all) == 1 {
		return "node " + all[0]
	}
	return fmt.Sprintf("%d nodes (%s)", len(all), strings.Join(all, ", "))
}
