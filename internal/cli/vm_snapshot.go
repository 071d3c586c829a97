package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
)

func (a *app) vmSnapshotCommand() *cobra.Command {
	cmd := group("snapshot", "Save and restore the state of VMs",
		a.vmSnapshotSaveCommand(), a.vmSnapshotRestoreCommand(), a.vmSnapshotListCommand(), a.vmSnapshotRemoveCommand())
	cmd.Long = `Saves and restores a VM's disk, firmware and TPM. A snapshot of a running VM has
its memory, too, and leaves it running when it is restored.`
	cmd.Example = examples("vm snapshot save clean", "", "vm snapshot restore clean", "", "vm snapshot list", "")
	return cmd
}

// snapshotCommand returns a command that works with one snapshot of each VM.
func (a *app) snapshotCommand(cmd *cobra.Command, work func(snapshot string) vmAction) *cobra.Command {
	cmd.Use += " NAME"
	cmd.Args = arguments(cobra.ExactArgs(1))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.onTargets(cmd.Context(), work(args[0]))
	}
	return forNodes(cmd)
}

func (a *app) vmSnapshotSaveCommand() *cobra.Command {
	return a.snapshotCommand(&cobra.Command{
		Use: "save", Short: "Save the state of VMs under a name", SuggestFor: []string{"create", "take", "new"},
		Long: `Saves the state of the VMs under a name that has no snapshot yet. A VM that runs
goes on running, and its memory is saved, too: that takes as much disk as the
guest uses memory.`,
		Example:           examples("vm snapshot save clean", "", `vm snapshot save "before join"`, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(snapshot string) vmAction {
		return func(ctx context.Context, machines *vm.Machines, name string, r ui.Reporter) (vm.Report, error) {
			return machines.Save(ctx, name, snapshot, r)
		}
	})
}

func (a *app) vmSnapshotRestoreCommand() *cobra.Command {
	yes := false
	cmd := a.snapshotCommand(&cobra.Command{
		Use: "restore", Short: "Bring back a saved state of VMs", SuggestFor: []string{"load", "revert"},
		Long: `Brings a saved state back. The VM's present state is lost, so it asks first, unless
--yes is set. A snapshot without memory leaves the VM stopped.`,
		Example:           examples("vm snapshot restore clean", "", "vm snapshot restore clean --yes", "in a script"),
		ValidArgsFunction: a.completeSnapshots,
	}, nil)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.confirmed(cmd.Context(), yes, "Lose the present state, and restore "+args[0]+"?",
			func(ctx context.Context, machines *vm.Machines, name string, r ui.Reporter) (vm.Report, error) {
				return machines.Restore(ctx, name, args[0], r)
			})
	}
	addYesFlag(cmd, &yes)
	return cmd
}

func (a *app) vmSnapshotRemoveCommand() *cobra.Command {
	yes := false
	cmd := a.snapshotCommand(&cobra.Command{
		Use: "remove", Aliases: []string{"rm"}, Short: "Remove a snapshot of VMs", SuggestFor: []string{"delete"},
		Long:              `Removes a saved state and frees its disk space. Asks first, unless --yes is set.`,
		Example:           examples("vm snapshot remove clean", ""),
		ValidArgsFunction: a.completeSnapshots,
	}, nil)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.confirmed(cmd.Context(), yes, "Remove snapshot "+args[0]+"?",
			func(ctx context.Context, machines *vm.Machines, name string, r ui.Reporter) (vm.Report, error) {
				return machines.RemoveSnapshot(ctx, name, args[0], r)
			})
	}
	addYesFlag(cmd, &yes)
	return cmd
}

// confirmed does the work on every VM that the command line selects. If one of these VMs exists, it
// first asks the user.
func (a *app) confirmed(ctx context.Context, yes bool, question string, work vmAction) error {
	prompt := a.prompter(a.newStory())
	if err := canConfirm(prompt, yes, question); err != nil {
		return err
	}
	machines, err := a.machines()
	if err != nil {
		return err
	}
	documents, err := a.vmTargets(machines)
	if err != nil {
		return err
	}
	existing, err := a.existing(machines, documents)
	if err != nil {
		return err
	}
	if len(existing) > 0 {
		if err := confirm(ctx, prompt, yes, question); err != nil {
			return err
		}
	}
	return a.onNamed(ctx, machines, documents, work)
}

func (a *app) vmSnapshotListCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the snapshots of a VM, the oldest first",
		Example: examples("vm snapshot list", ""),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withVM(cmd.Context(), func(ctx context.Context, machines *vm.Machines, name string) error {
				all, err := machines.Snapshots(ctx, name)
				if err != nil {
					return err
				}
				list := vm.SnapshotList{VM: name, Snapshots: all}
				return a.print(list, func(p *ui.Page) error { return list.WriteText(p) })
			})
		},
	})
}
