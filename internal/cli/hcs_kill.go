package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/hcs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) hcsKillCommand() *cobra.Command {
	var yes bool
	cmd := canDryRun(forNodes(&cobra.Command{
		Use: "kill [flags] CONTAINER", Short: "End a compute system and all processes in it",
		Long: `Ends a compute system and all processes in it through the Host Compute Service,
and waits until it is gone. Use it for a compute system that the container
runtime cannot end. Delete a pod of a cluster with kubectl instead: the kubelet
restarts containers that this command ends.

CONTAINER is the beginning of an ID of "swdt hcs list", NAMESPACE/POD/CONTAINER,
or NAMESPACE/POD for the pod sandbox.`,
		Example: examples("hcs kill 6f1c09a2", "", "hcs kill default/web/web --yes", "in a script"),
		Args:    arguments(cobra.ExactArgs(1)), ValidArgsFunction: a.completeContainers,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runHCSKill(cmd.Context(), args[0], yes) },
	}))
	addYesFlag(cmd, &yes)
	return cmd
}

func (a *app) runHCSKill(ctx context.Context, name string, yes bool) error {
	s, err := a.oneNode("a compute system is on one node")
	if err != nil {
		return err
	}
	if err := canConfirm(s.options.Prompt, yes || a.global.dryRun,
		"End "+name+" with all that runs in it?"); err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (hcs.Killed,
		error) {
		found, err := computeSystems(ctx, n, doc, r)
		if err != nil {
			return hcs.Killed{}, err
		}
		system, err := found.Find(name)
		if err != nil {
			return hcs.Killed{}, err
		}
		k := found.NewKilled(doc.Node.Metadata.Name, system, a.global.dryRun)
		if a.global.dryRun {
			return k, nil
		}
		if err := confirm(ctx, s.options.Prompt, yes, "End "+k.String()+" with all that runs in it?"); err != nil {
			return k, err
		}
		return k, hcs.Kill(ctx, n.Compute, system.ID)
	})
	k, failed := results[0].Value, fleet.Failures(results)
	if failed != nil && a.inText() {
		return failed
	}
	if failed != nil {
		k.Outcome = results[0].Outcome()
	}
	report := hcs.KillReport{Nodes: []hcs.Killed{k}}
	return errors.Join(failed, a.print(report, report.WriteText))
}
