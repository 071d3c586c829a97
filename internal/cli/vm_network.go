package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/network"
)

// dockerHost is the environment variable that names Docker's engine, as for the docker command.
const dockerHost = "DOCKER_HOST"

// docker returns the engine whose networks VMs can be on.
func (a *app) docker() network.Docker { return network.DockerAt(a.env.Getenv(dockerHost)) }

func (a *app) vmNetworkCommand() *cobra.Command {
	cmd := group("network", "Check and prepare the networks of VMs",
		a.vmNetworkCheckCommand(), a.vmNetworkPrepareCommand(), a.vmNetworkRemoveCommand())
	cmd.Long = `Puts VMs where the cluster is: on the bridge of kind's containers. A node file
asks for that with spec.machine.network: {mode: bridge, bridge: kind}.`
	cmd.Example = examples(
		"vm network check", "does the cluster reach the VM?",
		"vm network prepare --dry-run", "what is missing, as commands",
		"vm network prepare", "",
	)
	return cmd
}

func (a *app) vmNetworkCheckCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use: "check [flags]", Short: "Find what keeps the cluster from a VM", SuggestFor: []string{"doctor", "test"},
		Long: `Checks the networks of the VMs of the node files: the bridge and its Docker
network, the VM's address, the rights for its tap device, the control plane's
address, and the rules of this machine's firewall that stop connections between
the VM and the cluster. Reading the firewall needs root's rights: without them,
the check leaves the firewall out. It changes nothing. The exit code is 5 if a
network does not work; a network of mode user never works for a cluster.`,
		Example: examples("vm network check", "", "vm network check -o json", ""),
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runVMNetworkCheck(cmd.Context()) },
	})
}

func (a *app) runVMNetworkCheck(ctx context.Context) error {
	documents, err := a.vmDocuments()
	if err != nil {
		return err
	}
	machines, err := a.machines()
	if err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	checks, err := machines.CheckNetworks(ctx, documents)
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

func (a *app) vmNetworkPrepareCommand() *cobra.Command {
	return canDryRun(forNodes(&cobra.Command{
		Use: "prepare [flags]", Short: "Make what the networks of VMs need", SuggestFor: []string{"up", "create", "setup"},
		Long: `Makes what the VMs' networks of mode bridge lack: the Docker network of kind, half
of whose addresses are for VMs, if kind has not made its own; and a tap device for
each VM, which its user can then use without rights. A second run does nothing.

Docker's network needs the rights to use Docker; a tap device needs root's. Without
them, prepare prints the one command for root that does the rest. This machine
forgets tap devices when it restarts: then run prepare again.

It changes no other network, bridge or device, and no rule of the firewall.`,
		Example: examples("vm network prepare --dry-run", "the steps, as commands", "vm network prepare", ""),
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			documents, err := a.vmDocuments()
			if err != nil {
				return err
			}
			return a.runNetworkSteps(cmd.Context(), documents, network.Preparation)
		},
	}))
}

func (a *app) vmNetworkRemoveCommand() *cobra.Command {
	yes := false
	cmd := canDryRun(forNodes(&cobra.Command{
		Use: "remove [flags]", Short: "Remove what prepare has made", SuggestFor: []string{"down", "delete", "undo"},
		Long: `Removes the VMs' tap devices, and the Docker network if swdt has made it and
neither a container nor another VM is on it. A VM that runs keeps its tap. Asks
first, unless --yes is set. It needs no root.`,
		Example: examples("vm network remove --dry-run", "", "vm network remove", ""),
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runVMNetworkRemove(cmd.Context(), yes) },
	}))
	addYesFlag(cmd, &yes)
	return cmd
}

func (a *app) runVMNetworkRemove(ctx context.Context, yes bool) error {
	prompt := a.prompter(a.newStory())
	yes = yes || a.global.dryRun
	if err := canConfirm(prompt, yes, "Remove the networks of VMs?"); err != nil {
		return err
	}
	documents, err := a.vmDocuments()
	if err != nil {
		return err
	}
	names := strings.Join(vmNames(documents), ", ")
	question := "Remove the networks of " + severalVMs(len(documents)) + ": " + names + "?"
	if err := confirm(ctx, prompt, yes, question); err != nil {
		return err
	}
	return a.runNetworkSteps(ctx, documents, network.Removal)
}

// errNeedsRoot ends a preparation that root must complete.
var errNeedsRoot = errors.New("a step needs root's rights: run the printed command, then `swdt vm start`")

// runNetworkSteps runs the steps of each VM, one VM after the other: they may share a network.
func (a *app) runNetworkSteps(
	ctx context.Context, documents []config.Document, steps func(network.Docker, network.Wanted) ([]plan.Step, error),
) error {
	docker := a.docker()
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	story := a.newStory()
	results := fleet.Run(ctx, documents, 1, func(ctx context.Context, d config.Document) (network.Results, error) {
		r := story.Node(d.Node.Metadata.Name)
		defer ui.Done(r)
		all, err := steps(docker, vm.WantedNetwork(d))
		if err != nil {
			return network.Results{}, a.remedied(d.Node.Metadata.Name, err)
		}
		done, err := network.Run(ctx, all, a.global.dryRun, r)
		return done, a.remedied(d.Node.Metadata.Name, explain(ctx, err))
	})
	story.End()
	report := vm.NewNetworkSteps(results, func(name string) []string { return a.asRoot(docker, documents, name) })
	err := a.print(report, func(p *ui.Page) error { return report.WriteText(p, a.shell().Join) })
	if err = errors.Join(err, fleet.Failures(results)); err != nil {
		return err
	}
	for _, result := range report.VMs {
		if len(result.Root) > 0 {
			return a.remedied("", errNeedsRoot)
		}
	}
	return nil
}

// asRoot returns the command with which root prepares a VM's network for this user. It names program and
// file with their whole paths, since root has another PATH and home.
func (a *app) asRoot(docker network.Docker, documents []config.Document, name string) []string {
	line := []string{"sudo"}
	if host := docker.Host(); host != "" {
		line = append(line, fmt.Sprintf("%s=%s", dockerHost, host))
	}
	program, err := os.Executable()
	if err != nil {
		program = "swdt"
	}
	line = append(line, program, "vm", "network", "prepare")
	for _, document := range documents {
		if document.Node.Metadata.Name != name {
			continue
		}
		file, err := filepath.Abs(document.File)
		if err != nil || document.File == "-" {
			file = document.File
		}
		line = append(line, "-c", file)
	}
	return append(line, "-n", name)
}
