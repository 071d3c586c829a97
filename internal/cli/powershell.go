package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/command"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/powershell"
)

// maxScript is far above any script; a wrong file is not read whole.
const maxScript = 16 << 20

func (a *app) powershellCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:   "powershell [FILE]",
		Short: "Run a PowerShell script on the node, with its streams and exit code",
		Long: `Runs a PowerShell script of this machine on the node: FILE, or what comes on
stdin. It runs with $ErrorActionPreference = 'Stop' and UTF-8 output. swdt's exit
code is the script's: that of exit N, else of the last program it ran, else 0, or
1 after an uncaught error. With FILE, stdin is the script's to read.

On several nodes each line begins with the node's name, and stdin is empty.`,
		Example: examples(
			"powershell check.ps1", "",
			"powershell < check.ps1", "the same",
		),
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.FixedCompletions([]string{"ps1"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := config.Stdin
			if len(args) == 1 {
				file = args[0]
			}
			return a.runPowershell(cmd.Context(), file)
		},
	})
}

func (a *app) runPowershell(ctx context.Context, file string) error {
	if a.global.dryRun {
		return usagef("swdt cannot know what a script would change: powershell has no --dry-run")
	}
	script, err := a.readScript(file)
	if err != nil {
		return err
	}
	return a.runRemote(ctx, func(ctx context.Context, n *node.Node, streams command.Streams) (int, error) {
		if file == config.Stdin {
			streams.Stdin = nil // it was the script
		}
		clients := powershell.Clients{Files: n.Files, Processes: n.Processes}
		return powershell.Run(ctx, clients, script, streams)
	})
}

func (a *app) readScript(file string) (string, error) {
	var reader io.Reader
	if file == config.Stdin {
		if reader = a.stdin(); reader == nil {
			return "", usagef("stdin has the node file already: name the script's file")
		}
		if isTerminal(reader) {
			fmt.Fprintln(a.streams.Err, "type the script, then end it with Ctrl-D (on Windows Ctrl-Z and Enter):")
		}
	} else {
		opened, err := os.Open(file)
		if err != nil {
			return "", usagef("read the script: %v", err)
		}
		defer opened.Close()
		reader = opened
	}
	content, err := io.ReadAll(io.LimitReader(reader, maxScript+1))
	if err != nil {
		return "", usagef("read the script: %v", err)
	}
	if len(content) > maxScript {
		return "", usagef("%s is larger than %d MiB: that is no script", file, maxScript>>20)
	}
	script, err := powershell.Text(content)
	if err != nil {
		return "", usagef("%s: %v", file, err)
	}
	return script, nil
}
