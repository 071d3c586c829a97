package cli

import "github.com/spf13/cobra"

func (a *app) fleetCommand() *cobra.Command {
	cmd := group("fleet", "Bring binaries to many nodes, run by Kubernetes", a.fleetPublishCommand(),
		a.fleetInstallCommand(), a.fleetUninstallCommand(), a.fleetStatusCommand(), a.fleetWatchCommand())
	cmd.AddCommand(a.fleetOrderCommands()...)
	cmd.Long = `Brings binaries to many nodes. "publish" puts them into an OCI registry, from which
each node fetches only the difference to the build that it has. The other commands
install a controller in the cluster, which brings a NodeRollout's binaries to the
Windows nodes, a few at a time, and show and steer its rollouts.`
	cmd.Example = examples("fleet publish registry.example/team/node:dev", "",
		"fleet install --dry-run", "what would change in the cluster",
		"fleet status", "progress, and the failed nodes",
		"fleet watch kubelet", "the same live, until the rollout ends",
		"fleet pause kubelet", "touch no further nodes")
	return cmd
}
