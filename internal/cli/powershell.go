package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/format/powershell"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/node/script"
)

// maxScript is far larger than any script, so that swdt does not read a whole wrong file.
const maxScript = 16 << 20

func (a *app) powershellCommand() *cobra.Command {
	var text string
	cmd := forNodes(&cobra.Command{
		Use:   "powershell [FILE]",
		Short: "Run a PowerShell script on nodes",
		Long: `Runs a PowerShell script of your machine on the node: FILE, the text of
--command, or stdin. It runs with $ErrorActionPreference = 'Stop' and UTF-8
output. The exit code of swdt is the exit code of the script: N after exit N,
else the exit code of the last program that the script ran, else 0; it is 1
after an uncaught error. With FILE or --command, the script can read stdin.

-Command, as powershell.exe spells it, takes all that follows, so swdt's own
flags come before it.

On several nodes each line begins with the node's name, and stdin is empty.`,
		Example: examples(
			"powershell check.ps1", "",
			"powershell < check.ps1", "the same",
			"powershell --command 'Get-Service kubelet'", "",
			"powershell -n win-1 -Command Get-Service kubelet", "as powershell.exe has it",
		),
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.FixedCompletions([]string{"ps1"}, cobra.ShellCompDirectiveFilterFileExt),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch missing := a.missingNodeFile(); {
			case missing != "":
				return usagef("-c %s: there is no such node file; for the text of a script, use -Command", missing)
			case cmd.Flags().Changed(commandFlag) && len(args) > 0:
				return usagef("%s is one script too many: there is --command already", args[0])
			case cmd.Flags().Changed(commandFlag):
				return a.runPowershellText(cmd.Context(), text, false)
			case len(args) == 1:
				return a.runPowershell(cmd.Context(), args[0])
			}
			return a.runPowershell(cmd.Context(), config.Stdin)
		},
	})
	cmd.Flags().StringVar(&text, commandFlag, "", "the script's `text` itself, instead of FILE")
	return cmd
}

// missingNodeFile returns the first value of --config that is no file, or "".
func (a *app) missingNodeFile() string {
	for _, file := range a.global.config {
		if file != config.Stdin && !exists(file) {
			return file
		}
	}
	return ""
}

// commandFlag is swdt's own spelling of powershell.exe's -Command.
const commandFlag = "command"

// commandOfPowershell rewrites -Command, in any case, as --command. pflag would reject -Command,
// and would read -command as -c with the value ommand. All arguments after -Command belong to the
// script, as in powershell.exe.
func commandOfPowershell(root *cobra.Command, args []string) []string {
	found, _, err := root.Find(args)
	at := slices.IndexFunc(args,
		func(arg string) bool { return strings.EqualFold(arg, "-"+commandFlag) || arg == "--" })
	if err != nil || found.Name() != "powershell" || found.Parent() != root || at < 0 || at == len(args)-1 ||
		args[at] == "--" {
		return args
	}
	return append(slices.Clone(args[:at]), "--"+commandFlag, strings.Join(args[at+1:], " "))
}

func (a *app) runPowershell(ctx context.Context, file string) error {
	text, err := a.readScript(file)
	if err != nil {
		return err
	}
	return a.runPowershellText(ctx, text, file == config.Stdin)
}

// runPowershellText runs a script on the nodes. If the script came from stdin, the script itself
// gets no stdin, since swdt has read all of it.
func (a *app) runPowershellText(ctx context.Context, text string, fromStdin bool) error {
	return a.runRemote(ctx, func(ctx context.Context, n *node.Node, streams command.Streams) (int, error) {
		if fromStdin {
			streams.Stdin = nil
		}
		clients := script.Clients{Files: n.Files, Processes: n.Processes}
		return script.Run(ctx, clients, text, streams)
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
