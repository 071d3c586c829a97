package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/day0/overview"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	var interval time.Duration
	cmd := a.takesNodes(forNodes(&cobra.Command{
		Use:   "status [NODE…] [flags]",
		Short: "Show what runs on nodes, and the state of their cluster",
		Long: `Shows the Windows of each node and, for each component of the node file, its
version, hash, service and process, and whether the source of the node file has
another binary now. The node's containerd, kubelet and kube-proxy are listed
without a provisioner too: containerd and kubelet compared with the versions
that the node file has for a join, kube-proxy without a comparison. An
unfinished transaction is listed as well. The command changes nothing.

If the files have a document of kind Cluster, it shows the control plane, the
pod network and, for each node, its VM, Windows and services, and whether the
Node is Ready. A part that cannot be reached does not hide the others. The exit
code is 5 if all parts answer, but the pod network does not work or a node is
not Ready. -o wide adds the network's settings and the nodes' components.

With --watch it looks at the nodes again and again until Ctrl-C: on a terminal it
redraws the table, else it prints a node again when its state has changed.`,
		Example: examples(
			"status", "",
			"status win-1 win-2", "of these nodes",
			"status -c cluster.yaml -c nodes.yaml", "a whole cluster",
			"status --watch", "and again, until Ctrl-C",
			"status -o json", "for scripts",
		),
		Args: arguments(noFlags),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case interval < 100*time.Millisecond:
				return usagef("--interval %s: use 100ms or more", interval)
			case !watch:
				interval = 0
			}
			return a.runStatus(cmd.Context(), interval)
		},
	}))
	cmd.Flags().BoolVar(&watch, "watch", false, "look again and show each change, until Ctrl-C")
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "`time` between two looks of --watch")
	return cmd
}

// runStatus shows the status once or, if every is not 0, until Ctrl-C.
func (a *app) runStatus(ctx context.Context, every time.Duration) error {
	documents, clusters, err := a.allDocuments()
	if err != nil {
		return err
	}
	if len(documents) == 0 && len(clusters) > 1 {
		return usagef("there are %d clusters and no node: name the file of one cluster with -c", len(clusters))
	}
	s, err := a.sessionFor(documents)
	if err != nil {
		return err
	}
	if every > 0 && len(documents) == 0 {
		return usagef("--watch looks at nodes, and the files have none: leave --watch out, or add the file of the nodes with -c")
	}
	if every > 0 {
		for _, c := range clusters {
			s.story.Node("").Info("--watch looks at the nodes, not at the cluster %s of %s; without it, status shows both",
				c.Cluster.Metadata.Name, c.File)
		}
		return a.watchStatus(ctx, s, every)
	}
	options := push.StatusOptions{Sources: source.NewSet(source.Options{})}
	if len(clusters) == 1 {
		return a.runOverview(ctx, s, clusters[0], options)
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document,
		r ui.Reporter) (push.NodeStatus, error) {
		return push.Status(ctx, n, doc, options, r)
	})
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed // the error already contains everything that the result would contain
	}
	for _, result := range results {
		a.remedyComponents(result.Value)
	}
	report := push.NewStatusReport(results)
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	return failed
}

// remedyComponents renders the commands in the messages about a node's components.
func (a *app) remedyComponents(status push.NodeStatus) {
	for i := range status.Components {
		c := &status.Components[i]
		c.Message = a.remedies(status.Name, c.Message)
	}
}

// runOverview prints the state of the cluster of a document and of the session's nodes.
func (a *app) runOverview(ctx context.Context, s *session, doc config.ClusterDocument,
	status push.StatusOptions) error {
	a.rememberExisting(doc)
	machines, err := a.machines()
	if err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	report, err := overview.Look(ctx, doc, s.documents, overview.Options{
		Machines: machines, Status: status,
		Clusters: func(ctx context.Context) (*kindcluster.Clusters, error) {
			return a.clustersOfKind(ctx, doc.Cluster.Spec.ControlPlane.Kind.Runtime, s.story.Node(doc.Cluster.Metadata.Name))
		},
		OnNodes: func(ctx context.Context, look overview.OfNode) []fleet.Result[overview.Found] {
			return onNodes(ctx, s, look)
		},
	})
	s.story.End()
	a.remedyDifferences(report.Cluster)
	for _, n := range report.Nodes {
		a.remedyComponents(n.NodeStatus)
	}
	if printed := a.print(report, report.WriteText); printed != nil {
		return printed
	}
	var unknown *overview.UnknownError
	switch {
	case errors.As(err, &unknown): // all of its parts, not only one, decide on the exit code
		return &exitError{code: commonCode(&fleet.Error{Failed: unknown.Parts}), err: explain(ctx, err)}
	case err != nil:
		return explain(ctx, err)
	case report.Failed():
		return &exitError{code: exitFinding}
	}
	return nil
}
