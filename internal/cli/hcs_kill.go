package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/hcs"
	"github.com/swdt-dev/swdt/internal/hns"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) hcsKillCommand() *cobra.Command {
	var yes bool
	cmd := canDryRun(forNodes(&cobra.Command{
		Use: "kill [flags] CONTAINER", Short: "End a compute system with all that runs in it",
		Long: `Has the Host Compute Service end a compute system at once, with all that runs in it,
and waits until it is gone. It is for what the container runtime cannot end: a pod
of a cluster is better deleted there, and the kubelet starts again what ends here.

CONTAINER is the beginning of an ID of "swdt hcs list", NAMESPACE/POD/CONTAINER, or
NAMESPACE/POD for the pod's sandbox.`,
		Example: examples("hcs kill 6f1c09a2", "", "hcs kill default/web/web --yes", "in a script"),
		Args:    arguments(cobra.ExactArgs(1)), ValidArgsFunction: a.completeContainers,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runHCSKill(cmd.Context(), args[0], yes) },
	}))
	addYesFlag(cmd, &yes)
	return cmd
}

// killReport is the result of `swdt hcs kill`.
type killReport struct {
	Nodes []killed `json:"nodes"`
}

type killed struct {
	frame            // its result: killed, wouldKill, kept or failed
	ID        string `json:"id"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
}

func (k killed) what() string {
	if k.Pod == hns.None {
		return "compute system " + hcs.Short(k.ID) + ", which is no pod's"
	}
	if k.Pod == hns.Unknown {
		return "compute system " + hcs.Short(k.ID) + ", of which nobody tells whose it is"
	}
	if k.Container == "" {
		return "the sandbox of pod " + k.Pod + " (" + hcs.Short(k.ID) + ")"
	}
	return "container " + k.Container + " of pod " + k.Pod + " (" + hcs.Short(k.ID) + ")"
}

func (a *app) runHCSKill(ctx context.Context, name string, yes bool) error {
	s, err := a.oneNode("a compute system is on one node")
	if err != nil {
		return err
	}
	if !yes && !a.global.dryRun && s.options.Prompt == nil {
		return noTerminalToAsk("End " + name + " with all that runs in it?")
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (killed, error) {
		found, err := systemsOf(ctx, n, doc, r)
		if err != nil {
			return killed{}, err
		}
		system, err := found.find(name)
		if err != nil {
			return killed{}, err
		}
		k := killed{frame: newFrame(doc.Node.Metadata.Name, "killed", nil), ID: system.ID}
		k.Pod, k.Container = found.owner(system)
		if a.global.dryRun {
			k.Result = "wouldKill"
			return k, nil
		}
		if wanted, err := s.confirmKill(ctx, k, yes); err != nil || !wanted {
			k.Result = "kept"
			return k, err
		}
		return k, hcs.Kill(ctx, n.Compute, system.ID)
	})
	k, failed := results[0].Value, fleet.Failures(results)
	if failed != nil && a.inText() {
		return failed
	}
	if failed != nil {
		k.frame = newFrame(results[0].Name(), "", results[0].Err)
	}
	return errors.Join(failed, a.print(killReport{Nodes: []killed{k}}, func(w *ui.Page) error {
		words := map[string]string{"killed": "killed ", "wouldKill": "would kill ", "kept": "kept "}
		_, err := fmt.Fprintln(w, words[k.Result]+k.what())
		return err
	}))
}

// confirmKill asks, unless the answer is known.
func (s *session) confirmKill(ctx context.Context, k killed, yes bool) (bool, error) {
	if yes {
		return true, nil
	}
	return s.options.Prompt.Confirm(ctx, "End "+k.what()+" with all that runs in it?")
}

// find finds a compute system by its ID or by whose it is.
func (c computeSystems) find(name string) (hcs.System, error) {
	system, err := hcs.FindSystem(c.systems, name)
	var unknown *hcs.NotFoundError
	if !errors.As(err, &unknown) {
		return system, err
	}
	// The runtime knows those, too, that ended before the one of now was started.
	live := slices.DeleteFunc(slices.Clone(c.owners), func(o hcs.Owner) bool { _, there := c.of(o); return !there })
	owner, err := hcs.FindOwner(live, name, false)
	if errors.As(err, &unknown) {
		owner, err = hcs.FindOwner(c.owners, name, false)
	}
	if err != nil {
		return hcs.System{}, err
	}
	if system, there := c.of(owner); there {
		return system, nil
	}
	return hcs.System{}, fmt.Errorf("%s (%s) is no compute system of this node: it is a HostProcess container, is in a utility VM or has ended; `swdt hcs list` shows those that are",
		owner, hcs.Short(owner.ID))
}

// of is the compute system of an owner.
func (c computeSystems) of(owner hcs.Owner) (hcs.System, bool) {
	for _, s := range c.systems {
		if _, ok := hcs.OwnerOf([]hcs.Owner{owner}, s); ok {
			return s, true
		}
	}
	return hcs.System{}, false
}
