package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/rollout/manage"
)

func (a *app) fleetStatusCommand() *cobra.Command {
	o := &clusterOptions{}
	cmd := &cobra.Command{
		Use: "status [NAME...]", Short: "Show rollouts, and the nodes that failed",
		SuggestFor: []string{"list", "get", "show"},
		Long: `Shows the rollouts of the cluster with their progress, and the nodes that failed or
are on their way. -o json has all touched nodes, with their journals. The exit code
is 5 if a node of these rollouts has failed.`,
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
			if report.Failed() {
				return &exitError{code: exitFinding}
			}
			return nil
		},
	}
	o.addFlags(cmd)
	return cmd
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
			`Makes a rollout go on after "fleet pause", "fleet abort" or "fleet rollback". A
rollout that failures have stopped stays stopped, until its content is correct.`),
		a.fleetOrderCommand(manage.Abort, "Touch no further nodes, and let claimed nodes go",
			`Ends a rollout: it touches no further node, and lets go of nodes that have not begun
to change. Nodes that have begun go on to their end. Updated nodes keep the content.`),
		a.fleetOrderCommand(manage.RollBack, "Restore the previous binaries on all updated nodes",
			`Restores the previous binaries on all nodes that have the rollout's content, within
maxUnavailable. Changes by setup stay. A node restores its binaries itself, so
nothing is downloaded.`),
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
