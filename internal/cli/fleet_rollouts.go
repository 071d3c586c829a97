package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/rollout/manage"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

func (a *app) fleetStatusCommand() *cobra.Command {
	o := &clusterOptions{}
	cmd := &cobra.Command{
		Use: "status [NAME...]", Short: "Show rollouts, and the nodes that failed",
		SuggestFor: []string{"list", "get", "show"},
		Long: `Shows the rollouts of the cluster with their progress, and the nodes that failed or
are on their way. -o json has all touched nodes, with their journals. The exit code
is 5 if a node of these rollouts has failed, or if one of them is not valid: then
its message names the wrong field, and it touches no node.`,
		Example: examples("fleet status", "", "fleet status kubelet -o json", "all its touched nodes"),
		RunE: func(cmd *cobra.Command, names []string) error {
			ctx, cancel := a.global.bounded(cmd.Context())
			defer cancel()
			report, err := onFleet(ctx, o, func(ctx context.Context, c *cluster.Cluster) (manage.Report, error) {
				return manage.Look(ctx, c, names...)
			})
			if err != nil {
				return err
			}
			if err := a.print(report, report.WriteText); err != nil {
				return err
			}
			if report.Bad() {
				return &exitError{code: exitFinding}
			}
			return nil
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (a *app) fleetWatchCommand() *cobra.Command {
	o := &clusterOptions{}
	cmd := &cobra.Command{
		Use: "watch [NAME...]", Short: "Show rollouts live, until they end",
		SuggestFor: []string{"follow", "wait", "top"},
		Long: `Shows the progress of rollouts until all of them have ended: Complete, Stopped,
Aborted or RolledBack, with no node on its way. On a terminal it is a table that is
redrawn, with the nodes that failed or are on their way; otherwise a line for each
change. -o json prints a line for each change, with the rollouts and nodes that
have changed. If the connection to the API server is lost, it connects again.

Ctrl-C and --timeout end the watch, not the rollout. The exit code is 5 if a node
of these rollouts has failed, or if one of them is not valid: then its message
names the wrong field, and it touches no node.`,
		Example: examples("fleet watch", "", "fleet watch kubelet --timeout 2h", "in a pipeline",
			"fleet watch kubelet -o json", "a line for each change"),
		RunE: func(cmd *cobra.Command, names []string) error { return a.runFleetWatch(cmd.Context(), o, names) },
	}
	o.addFlags(cmd)
	return cmd
}

func (a *app) runFleetWatch(ctx context.Context, o *clusterOptions, names []string) error {
	live := &manage.Live{Page: a.page(), Now: time.Now}
	switch {
	case !a.inText():
		records := a.records(a.streams.Out)
		live.Record = func(r manage.Report) error { return records.write(r) }
	case a.canDraw(a.streams.Out):
		live.Screen = livetable.NewScreen(a.streams.Out)
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	story := a.newStory()
	defer story.End()
	reporter := story.Node("")
	last, err := onFleet(ctx, o, func(ctx context.Context, c *cluster.Cluster) (manage.Report, error) {
		return manage.Watch(ctx, c, manage.WatchOptions{Names: names, See: live.See,
			Lost: func(err error) { reporter.Warn("the connection to %s is lost: %v; connecting again", c.Server(), err) }})
	})
	if err == nil && last.Bad() {
		return &exitError{code: exitFinding}
	}
	return err
}

// fleetOrderCommand returns the command that gives an order to a rollout.
func (a *app) fleetOrderCommand(order manage.Order, short, long string) *cobra.Command {
	o := &clusterOptions{}
	name := string(order)
	cmd := canDryRun(&cobra.Command{
		Use: name + " NAME", Short: short, Long: long,
		Example: examples("fleet "+name+" kubelet", "", "fleet "+name+" kubelet --dry-run", "may I?"),
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := a.global.bounded(cmd.Context())
			defer cancel()
			report, err := onFleet(ctx, o, func(ctx context.Context, c *cluster.Cluster) (manage.Report, error) {
				return manage.Change(ctx, c, args[0], order, a.global.dryRun)
			})
			if err != nil {
				return err
			}
			return a.print(report, report.WriteText)
		},
	})
	o.addFlags(cmd)
	return cmd
}

func (a *app) fleetOrderCommands() []*cobra.Command {
	return []*cobra.Command{
		a.fleetOrderCommand(manage.Pause, "Touch no further nodes for now",
			`Keeps a rollout from touching further nodes. Nodes that it has touched go on to
their end. "fleet resume" ends the pause.`),
		a.fleetOrderCommand(manage.Resume, "Go on after a pause or an abort",
			`Makes a rollout go on after "fleet pause", "fleet abort" or "fleet rollback".
With onFailure: pause, it also goes on after a failure: the failures so far are
accepted, and the next one stops it. With onFailure: rollback, a rollout that
failures have stopped stays stopped, until its content is correct or its
failureLimit is higher.`),
		a.fleetOrderCommand(manage.Abort, "Touch no further nodes, and let claimed nodes go",
			`Ends a rollout: it touches no further node, and lets go of nodes that have not begun
to change. Nodes that have begun go on to their end. Updated nodes keep the content.`),
		a.fleetOrderCommand(manage.RollBack, "Restore the previous binaries on all nodes with the content",
			`Restores the previous binaries on all nodes that have the rollout's content,
failed ones included, within maxUnavailable. Changes by setup stay. A node
restores its binaries itself, so nothing is downloaded. After its end, a second
rollback tries once more the nodes whose pods did not leave.`),
	}
}

// onFleet does something in the cluster that the flags select.
func onFleet[T any](ctx context.Context, o *clusterOptions, do func(context.Context, *cluster.Cluster) (T, error)) (T,
	error) {
	c, err := o.open()
	if err != nil {
		var none T
		return none, err
	}
	result, err := do(ctx, c)
	return result, refused(explain(ctx, err))
}

// refused makes swdt end with the code for an API server that cannot be reached or used.
func refused(err error) error {
	var forbidden *cluster.ForbiddenError
	if errors.As(err, &forbidden) {
		return &exitError{code: exitUnreachable, err: err}
	}
	return unreachable(err)
}
