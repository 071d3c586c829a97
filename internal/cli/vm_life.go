package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
)

// bootLimit is the time that --wait gives a guest to start, unless --timeout is set.
const bootLimit = 15 * time.Minute

// startOptions select whether to start a VM, and whether to wait for its guest.
type startOptions struct {
	start, wait bool
	accel       accelerator // only for vm create
}

func (o *startOptions) addWaitFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the VM's SSH server answers (at most --timeout, "+
		"default "+ui.Seconds(bootLimit)+")")
}

func (a *app) vmCreateCommand() *cobra.Command {
	o := &startOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:        "create [flags]",
		Short:      "Make the VM that a node file describes",
		SuggestFor: []string{"up", "new", "make", "define", "run"},
		Long: `Makes the VM that spec.machine of the node file describes: its disk, which is a
layer over the image, its firmware, an SSH key, and the ports of 127.0.0.1 that
lead to it. Nothing runs until it is started.

From an ISO (spec.machine.image.iso), create first installs Windows into a golden
image, as "vm image build" does, unless that image exists. At its first start the
VM gets the node's name, a password and its keys.

With driver libvirt it adopts the domain that the node file names, and makes
nothing but a record and an SSH key.

A VM that exists is left as it is; swdt reports its differences from the node
file. "vm delete" removes everything that a failed or interrupted create has
left.

With a disk image (spec.machine.image.disk), log in as its administrator with
spec.credentials, or let the image trust the VM's key (vm status shows its path).`,
		Example: examples(
			"vm create", "",
			"vm create --start --wait", "and wait until its SSH server answers",
			"vm create --dry-run", "what would be made, and QEMU's command line",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runVMCreate(cmd.Context(), o) },
	}))
	cmd.Flags().BoolVar(&o.start, "start", false, "start the VM, too")
	o.accel.addFlag(cmd)
	o.addWaitFlag(cmd)
	return cmd
}

func (a *app) runVMCreate(ctx context.Context, o *startOptions) error {
	if o.wait && !o.start {
		return usagef("--wait waits for a VM that runs: use --start too")
	}
	documents, err := a.vmDocuments()
	if err != nil {
		return err
	}
	if documents, err = o.accel.replace(documents); err != nil {
		return err
	}
	machines, err := a.machines()
	if err != nil {
		return err
	}
	if a.global.dryRun {
		return a.planVMs(ctx, machines, documents)
	}
	return a.onVMs(ctx, documents, func(ctx context.Context, document config.Document, r ui.Reporter) (vm.Report, error) {
		report, err := machines.Create(ctx, document, r)
		if err != nil || !o.start {
			return report, err
		}
		if report.Result == fleet.Changed {
			r.Info("%s", report.Message)
		}
		return a.startVM(ctx, machines, report.Name, o.wait, r)
	})
}

// startVM starts a VM and, with wait, waits for its guest.
func (a *app) startVM(
	ctx context.Context, machines *vm.Machines, name string, wait bool, r ui.Reporter,
) (vm.Report, error) {
	report, err := machines.Start(ctx, name, r)
	if err != nil || !wait && report.Result == fleet.Unchanged {
		return report, err
	}
	if err := a.assign(ctx, machines, name, r); err != nil || !wait {
		return report, err
	}
	return a.awaitVM(ctx, machines, name, r)
}

// assign waits until the guest of a VM on a bridge has its address.
func (a *app) assign(ctx context.Context, machines *vm.Machines, name string, r ui.Reporter) error {
	ctx, cancel := a.bootBounded(ctx)
	defer cancel()
	return machines.Assign(ctx, name, r)
}

// bootBounded bounds a wait for a guest that starts, if --timeout does not.
func (a *app) bootBounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.global.timeout == 0 {
		return context.WithTimeout(ctx, bootLimit)
	}
	return context.WithCancel(ctx)
}

// awaitVM waits until a VM's SSH server answers.
func (a *app) awaitVM(ctx context.Context, machines *vm.Machines, name string, r ui.Reporter) (vm.Report, error) {
	ctx, cancel := a.bootBounded(ctx)
	defer cancel()
	return machines.Await(ctx, name, r)
}

func (a *app) planVMs(ctx context.Context, machines *vm.Machines, documents []config.Document) error {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	story := a.newStory()
	results := fleet.Run(ctx, documents, a.global.parallel, func(ctx context.Context, d config.Document) (vm.Plan, error) {
		r := story.Node(a.vmLabel(documents, d))
		defer ui.Done(r)
		plan, err := machines.Plan(ctx, d, r)
		return plan, a.remedied(d.Node.Metadata.Name, err)
	})
	story.End()
	plans := vm.NewPlans(results)
	if err := a.print(plans, func(p *ui.Page) error { return plans.WriteText(p, a.shell().Join) }); err != nil {
		return err
	}
	return fleet.Failures(results)
}

func (a *app) vmDeleteCommand() *cobra.Command {
	yes := false
	cmd := forNodes(&cobra.Command{
		Use:        "delete [flags]",
		Short:      "End VMs and remove their disks and snapshots",
		SuggestFor: []string{"rm", "remove", "destroy", "down", "undefine"},
		Long: `Ends the VMs at once and removes their disks, snapshots and keys, also of VMs
whose creation was interrupted. The images that they were made from stay. Asks
first, unless --yes is set. A libvirt domain that swdt has adopted is only
forgotten: it stays as it is, with its disks, and runs on.`,
		Example: examples(
			"vm delete", "the VMs of the node file",
			"vm delete -n windows-1 --yes", "by name, also without a node file",
		),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runVMDelete(cmd.Context(), yes) },
	})
	addYesFlag(cmd, &yes)
	return cmd
}

func (a *app) runVMDelete(ctx context.Context, yes bool) error {
	prompt := a.prompter(a.newStory())
	if err := canConfirm(prompt, yes, "Delete VMs with disks and snapshots?"); err != nil {
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
	if names := vmNames(existing); len(names) > 0 {
		if err := confirm(ctx, prompt, yes, deleteQuestion(names, machines.Adopted(names...))); err != nil {
			return err
		}
	}
	return a.onNamed(ctx, machines, documents, func(
		ctx context.Context, machines *vm.Machines, name string, r ui.Reporter,
	) (vm.Report, error) {
		return machines.Delete(ctx, name, r)
	})
}

// deleteQuestion returns the question whether to delete the VMs in names. For those that are also in
// adopted, it asks whether to release them, since swdt has not made them.
func deleteQuestion(names, adopted []string) string {
	made := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(adopted, name) })
	release := "release " + severalVMs(len(adopted)) + ", whose domains stay: " + strings.Join(adopted, ", ") + "?"
	question := "Delete " + severalVMs(len(made)) + " with disks and snapshots: " + strings.Join(made, ", ")
	switch {
	case len(adopted) == 0:
		return question + "?"
	case len(made) == 0:
		return "R" + release[1:]
	}
	return question + "; and " + release
}

func (a *app) vmStartCommand() *cobra.Command {
	o := &startOptions{}
	cmd := forNodes(&cobra.Command{
		Use:        "start [flags]",
		Short:      "Start VMs",
		SuggestFor: []string{"boot", "up", "resume"},
		Long: `Starts the VMs and returns as soon as they run. A guest needs minutes more until
its SSH server answers: --wait waits for that. A VM runs until it is stopped,
also without swdt. On a bridge, start also waits until the guest has taken the
address that swdt gives it. If another program has taken a VM's port of
127.0.0.1, the VM gets another, unless the node file sets it.`,
		Example: examples("vm start", "", "vm start --wait", "until its SSH server answers"),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onTargets(cmd.Context(), func(
				ctx context.Context, machines *vm.Machines, name string, r ui.Reporter,
			) (vm.Report, error) {
				return a.startVM(ctx, machines, name, o.wait, r)
			})
		},
	})
	o.addWaitFlag(cmd)
	return cmd
}

// stopOptions select how to end a VM.
type stopOptions struct{ vm.StopOptions }

// stop ends one VM. It is a vmAction.
func (o *stopOptions) stop(
	ctx context.Context, machines *vm.Machines, name string, r ui.Reporter,
) (vm.Report, error) {
	return machines.Stop(ctx, name, o.StopOptions, r)
}

// addForceFlag adds --force, which ends or resets a VM without asking its guest.
func addForceFlag(cmd *cobra.Command, force *bool, what string) {
	cmd.Flags().BoolVar(force, "force", false, what)
}

func (a *app) vmStopCommand() *cobra.Command {
	o := &stopOptions{}
	cmd := forNodes(&cobra.Command{
		Use:        "stop [flags]",
		Short:      "Shut VMs down",
		SuggestFor: []string{"halt", "shutdown", "poweroff", "kill"},
		Long: `Asks the guests to shut down, and waits until they have, at most --timeout
(default ` + ui.Seconds(vm.StopLimit) + `). A guest that does not obey runs on. With --force, a VM ends at once, as
in a power cut: what the guest has not written is lost.`,
		Example: examples("vm stop", "", "vm stop --timeout 10m", "", "vm stop --force", "at once"),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onTargets(cmd.Context(), o.stop)
		},
	})
	addForceFlag(cmd, &o.Force, "end it at once, as in a power cut, even if the guest does not shut down")
	return cmd
}

func (a *app) vmRestartCommand() *cobra.Command {
	o, wait := &stopOptions{}, &startOptions{}
	cmd := forNodes(&cobra.Command{
		Use:        "restart [flags]",
		Short:      "Shut VMs down and start them again",
		SuggestFor: []string{"reboot", "reset"},
		Long: `Asks the guests to shut down, and starts the VMs again. With --force, a VM is
reset at once, as by its reset button. A VM that does not run is started.`,
		Example: examples("vm restart", "", "vm restart --force", "at once"),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onTargets(cmd.Context(), func(
				ctx context.Context, machines *vm.Machines, name string, r ui.Reporter,
			) (vm.Report, error) {
				report, err := machines.Restart(ctx, name, o.StopOptions, r)
				if err != nil {
					return report, err
				}
				if err := a.assign(ctx, machines, name, r); err != nil || !wait.wait {
					return report, err
				}
				return a.awaitVM(ctx, machines, name, r)
			})
		},
	})
	addForceFlag(cmd, &o.Force, "reset it at once, even if the guest does not shut down")
	wait.addWaitFlag(cmd)
	return cmd
}
