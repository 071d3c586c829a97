package cli

import "github.com/spf13/cobra"

func (a *app) fleetCommand() *cobra.Command {
	cmd := group("fleet", "Bring binaries to many nodes through a registry", a.fleetPublishCommand())
	cmd.Long = `Brings binaries to many nodes through an OCI registry, from which each node
fetches only the difference to the build that it has.`
	cmd.Example = examples("fleet publish registry.example/team/node:dev", "")
	return cmd
}
