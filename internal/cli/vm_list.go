package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
)

func (a *app) vmListCommand() *cobra.Command {
	return &cobra.Command{
		Use:        "list",
		Aliases:    []string{"ls"},
		Short:      "List all of your VMs",
		SuggestFor: []string{"ps", "get"},
		Long: `Lists all of your VMs with their present state, of all node files. A VM whose
creation was interrupted is listed as incomplete, one that another swdt works on
as busy.`,
		Example: examples("vm list", "", "vm list -o name", "for scripts"),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			machines, err := a.machines()
			if err != nil {
				return err
			}
			return a.listVMs(cmd.Context(), machines, func(r vm.Reports, p *ui.Page) error { return r.WriteList(p) })
		},
	}
}

// listVMs prints the VMs with these names, or all VMs if there are no names.
func (a *app) listVMs(
	ctx context.Context, machines *vm.Machines, write func(vm.Reports, *ui.Page) error, names ...string,
) error {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	list, err := machines.List(ctx, names...)
	if err != nil {
		return explain(ctx, err)
	}
	for i := range list {
		if list[i].State == vm.Absent {
			list[i].Reason = a.absence()
		}
	}
	reports := vm.Reports{VMs: list}
	return a.print(reports, func(p *ui.Page) error { return write(reports, p) })
}

// absence explains why a VM of the command line does not exist.
func (a *app) absence() string {
	if a.loaded == 0 {
		return "there is no VM of that name, and no node file to make it from"
	}
	return "`swdt vm create` makes it"
}

func (a *app) vmStatusCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:        "status [flags]",
		Short:      "Show VMs in detail",
		SuggestFor: []string{"info", "show", "describe", "inspect"},
		Long: `Shows the state of VMs, what they are made of, and the files with which to log in:
the VM's SSH key, and the host key that it showed at the first contact.`,
		Example: examples("vm status", "", `vm status -o jsonpath='{.vms[0].state}'`, ""),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			machines, err := a.machines()
			if err != nil {
				return err
			}
			documents, err := a.vmTargets(machines)
			if err != nil {
				return err
			}
			write := func(r vm.Reports, p *ui.Page) error { return r.WriteDetails(p) }
			return a.listVMs(cmd.Context(), machines, write, vmNames(documents)...)
		},
	})
}

func (a *app) vmCheckCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:   "check [flags]",
		Short: "Find what this machine lacks to run VMs",
		Long: `Checks whether this machine can run the VMs of the node files with the drivers
that they name or, without a node file, any VM with the default driver:
programs, hardware acceleration, firmware, memory and disk. It changes nothing.
The exit code is 5 if a VM cannot be made.`,
		Example: examples("vm check", "", "vm check -c windows-1.yaml", "for this VM"),
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runVMCheck(cmd.Context()) },
	})
}

func (a *app) runVMCheck(ctx context.Context) error {
	machines, err := a.machines()
	if err != nil {
		return err
	}
	documents, err := a.vmDocuments()
	if err != nil {
		var none *config.Error
		if _, missing := config.DefaultSource(); missing == nil || !errors.As(err, &none) || a.selects() {
			return err
		}
		documents = nil
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	checks, err := machines.Check(ctx, documents)
	if err != nil {
		return explain(ctx, err)
	}
	if err := a.print(checks, func(p *ui.Page) error { return checks.WriteText(p) }); err != nil {
		return err
	}
	if checks.Failed() {
		return &exitError{code: exitFinding}
	}
	return nil
}

// selects reports whether the command line chooses node files or nodes.
func (a *app) selects() bool {
	return len(a.global.config) > 0 || len(a.global.nodes) > 0 || a.global.selector != ""
}

// completeVMs completes -n with the names of the VMs that exist and of the VMs in node files.
func (a *app) completeVMs(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if machines, err := a.machines(); err == nil {
		names = machines.Names()
	}
	if documents, err := a.documents(); err == nil {
		for _, document := range documents {
			if document.Node.Spec.Machine != nil && !slices.Contains(names, document.Node.Metadata.Name) {
				names = append(names, document.Node.Metadata.Name)
			}
		}
	}
	other := func(name string) bool { return !strings.HasPrefix(name, toComplete) }
	return slices.DeleteFunc(names, other), cobra.ShellCompDirectiveNoFileComp
}

// completeSnapshots completes the names of the VM's snapshots.
func (a *app) completeSnapshots(
	cmd *cobra.Command, args []string, toComplete string,
) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), completionTimeout)
	defer cancel()
	var names []string
	_ = a.withVM(ctx, func(ctx context.Context, machines *vm.Machines, name string) error {
		all, err := machines.Snapshots(ctx, name)
		for _, snapshot := range all {
			if strings.HasPrefix(snapshot.Name, toComplete) {
				names = append(names, snapshot.Name)
			}
		}
		return err
	}) // a completion reports no errors
	return names, cobra.ShellCompDirectiveNoFileComp
}
