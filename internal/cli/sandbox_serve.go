package cli

import (
	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/sandbox"
)

// sandboxBehindSSHDCommands returns the commands that put any OpenSSH server in front of a Wine
// sandbox's prefix. The server's sshd_config names them as ForceCommand and as SFTP subsystem.
func (a *app) sandboxBehindSSHDCommands() []*cobra.Command {
	return []*cobra.Command{a.sandboxShellCommand(), a.sandboxSFTPCommand()}
}

func (a *app) sandboxShellCommand() *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use:    "shell",
		Short:  "Run SSH_ORIGINAL_COMMAND in a Wine prefix, as a Windows node's sshd does",
		Hidden: true,
		Args:   arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			code, err := sandbox.RunShell(cmd.Context(), prefix, a.env.Getenv("SSH_ORIGINAL_COMMAND"), a.streams)
			if err == nil && code == 0 {
				return nil
			}
			return &exitError{code: max(code, 1), err: err}
		},
	}
	addPrefixFlag(cmd, &prefix)
	return cmd
}

func (a *app) sandboxSFTPCommand() *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use:    "sftp",
		Short:  "Serve a Wine prefix by SFTP on stdin and stdout, with Windows' paths",
		Hidden: true,
		Args:   arguments(cobra.NoArgs),
		RunE:   func(*cobra.Command, []string) error { return sandbox.RunSFTP(prefix, a.streams) },
	}
	addPrefixFlag(cmd, &prefix)
	return cmd
}

func addPrefixFlag(cmd *cobra.Command, prefix *string) {
	cmd.Flags().StringVar(prefix, "prefix", "", "`folder` of the Wine prefix")
	must(cmd.MarkFlagRequired("prefix"))
}
