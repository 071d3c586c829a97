package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/hcs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) hcsCommand() *cobra.Command {
	cmd := group("hcs", "Inspect compute systems: containers and utility VMs",
		a.hcsListCommand(), a.hcsReadCommand(), a.hcsExecCommand(), a.hcsKillCommand())
	cmd.Long = `Lists what the Host Compute Service of Windows runs: containers, and the utility
VMs of pods with Hyper-V isolation, each with its pod. HostProcess containers
are processes of the node and no compute systems.`
	cmd.Example = examples(
		"hcs list", "",
		`hcs read default/web 'C:\Windows\System32\drivers\etc\hosts'`, "",
		"hcs exec default/web -- ipconfig", "run a command in a container",
		"hcs kill 5b3e71a0 --yes", "if the runtime cannot end it",
	)
	return cmd
}

func (a *app) hcsListCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use: "list [flags]", Short: "List compute systems, with their pods and what they use",
		Long: `Lists all compute systems, with their pods and what they use.

ISOLATION is hyper-v for a utility VM and the containers in it, else process.
MEMORY is the private working set and CPU TIME the time used so far, as the Host
Compute Service reports them; - stands for a value that it does not report. JSON
and YAML have the processes in each system, and in "raw" the document of the
service.`,
		Example: examples("hcs list", "", "hcs list -o json", "for scripts"),
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runHCSList(cmd.Context()) },
	})
}

func (a *app) runHCSList(ctx context.Context) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	results := onNodes(ctx, s, computeSystems)
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	report := hcs.NewReport(results)
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	return failed
}

func computeSystems(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (hcs.Systems, error) {
	return hcs.Look(ctx, n, doc.RuntimePipe(), r)
}
