package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) cpCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:   "cp SRC DST",
		Short: "Copy files and folders to or from the node",
		Args:  arguments(cobra.ExactArgs(2)),
		RunE:  func(cmd *cobra.Command, args []string) error { return usagef("not yet") },
	})
}
