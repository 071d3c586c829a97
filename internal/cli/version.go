package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/agentbin/buildinfo"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit, and the agent's hash",
		Args:  arguments(cobra.NoArgs),
		RunE:  func(*cobra.Command, []string) error { return a.runVersion() },
	}
}

func (a *app) runVersion() error {
	agent, err := a.env.Agent()
	if err != nil && !errors.Is(err, agentbin.ErrNotEmbedded) {
		return err
	}
	build := buildinfo.New(a.env.Version, a.env.Commit, agent)
	return a.print(build, build.WriteText)
}
