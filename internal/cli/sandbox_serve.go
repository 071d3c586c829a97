package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/sandbox"
)

// sandboxShellCommand returns the command that puts any OpenSSH server in front of a Wine sandbox's prefix. The
// server's sshd_config names it as ForceCommand, and sftp-server.exe as SFTP subsystem.
func (a *app) sandboxShellCommand() *cobra.Command {
	var o sandbox.ShellOptions
	cmd := &cobra.Command{
		Use:    "shell",
		Short:  "Run SSH_ORIGINAL_COMMAND in a Wine prefix, as a Windows node's sshd does",
		Hidden: true,
		Args:   arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			code, err := sandbox.RunShell(cmd.Context(), o, a.env.Getenv("SSH_ORIGINAL_COMMAND"), a.streams)
			if err == nil && code == 0 {
				return nil
			}
			return &exitError{code: max(code, 1), err: err}
		},
	}
	cmd.Flags().StringVar(&o.Prefix, "prefix", "", "`folder` of the Wine prefix")
	must(cmd.MarkFlagRequired("prefix"))
	cmd.Flags().StringVar(&o.Shell, "shell", "", "default shell: "+strings.Join(sandbox.ShellNames(), ", "))
	cmd.Flags().StringVar(&o.Profile, "profile", "", "`lines` that the shell runs at each start")
	return cmd
}
