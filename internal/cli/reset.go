package cli

import (
	"context"
	"fmt"
	"slices"
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
		Short:      "Take back what join did to nodes",
		SuggestFor: []string{"leave", "unjoin", "uninstall", "delete"},
		Long: `Takes back what ` + "`swdt join`" + ` did, the last first, by the record that it keeps on
the node: what others have put there stays. The node's pods leave first, unless
--no-drain; --delete-node removes the Node object. Logs stay, and so do Windows
features. A second run finds nothing to do.

It asks first, unless --yes or --dry-run; without a terminal it demands one of them.`,
		Example: examples(
			"reset --kubeconfig admin.conf --delete-node", "leave the cluster",
			"reset --no-drain --yes", "the cluster is gone already; do not ask",
			"reset --no-drain --dry-run", "what would be removed",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runReset(cmd.Context(), o) },
	}))
	o.cluster.addFlags(cmd)
	cmd.Flags().BoolVar(&o.noDrain, "no-drain", false, "do not have the node's pods leave first")
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
	options, err := a.resetIn(o)
	if err != nil {
		return err
	}
	question := "Take back what swdt join did on " + whichNodes(s.documents) + "?"
	if err := confirm(ctx, s.options.Prompt, o.yes || a.global.dryRun, question); err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (stepsOutcome, error) {
		steps, err := join.Reset(doc, options)
		if err != nil {
			return stepsOutcome{}, err
		}
		// What a trace has to put back is put back before what join put there goes.
		steps = append(trace.Off(trace.Options{NoRestart: true, Holder: options.Holder}), steps...)
		done, err := plan.Run(ctx, n, steps, plan.Options{DryRun: a.global.dryRun, Ordered: true, Holder: options.Holder}, r)
		if err == nil && !slices.ContainsFunc(done, func(r plan.StepResult) bool { return r.State != plan.OK }) {
			done = nil
		}
		return stepsOutcome{Steps: done}, err
	})
	return a.printSteps(results, "nothing of swdt join is on this machine")
}

// resetIn says in which cluster, where one is needed.
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
		return options, usagef("to have the node's pods leave, name the cluster's kubeconfig with --kubeconfig or KUBECONFIG; or use --no-drain")
	}
	options.Cluster = found
	if !o.noDrain {
		options.Drain = &cluster.DrainOptions{Timeout: o.drainTimeout}
	}
	return options, nil
}

// whichNodes names the nodes of a question.
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
