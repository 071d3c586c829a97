package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/console"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func (a *app) shellCommand() *cobra.Command {
	var shell string
	cmd := a.takesNodes(forNodes(&cobra.Command{
		Use:   "shell [NODE] [flags]",
		Short: "Open a shell on a node",
		Long: `Opens PowerShell on a node, or cmd if the node has no PowerShell, with your
terminal. It works without an SSH server too, with --via kubernetes. All keys
go to the node, Ctrl-C included. The exit code of the shell is the exit code of
swdt, in the way of "swdt exec".

If the node does not answer, press ` + console.EscapeName + ` three times to end the session. All
that was started in it ends with it.

The node can draw on your terminal, set its title and see its size, and nothing
else: swdt drops sequences for the clipboard, for files, printers and windows.
In scripts, without a terminal, use "swdt exec" or "swdt powershell".`,
		Example: examples(
			"shell", "",
			"shell win-1", "",
			"shell -n win-1 --shell cmd", "",
			"shell -n win-1 --via kubernetes", "a node without SSH",
		),
		Args: arguments(cobra.MatchAll(cobra.MaximumNArgs(1), noFlags)),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runShell(cmd.Context(), shell) },
	}))
	cmd.Flags().StringVar(&shell, "shell", "", "powershell, pwsh, cmd or the `path` of another shell (default powershell"+
		" if the node has it, else cmd)")
	must(cmd.RegisterFlagCompletionFunc("shell", cobra.FixedCompletions([]string{"powershell", "pwsh", "cmd"},
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (a *app) runShell(ctx context.Context, shell string) error {
	choices := []string{shell}
	if shell == "" {
		choices = []string{"powershell", "cmd"}
	}
	var programs []onTerminal
	for _, choice := range choices {
		programs = append(programs, func(ctx context.Context, n *node.Node, size *agentv1.TerminalSize,
			streams command.Streams) (int, error) {
			code, err := command.Run(ctx, n.Processes, &agentv1.RunCommand{
				Path: choice, Args: shellArguments(choice), Terminal: size,
			}, streams)
			if errors.Is(err, fault.ErrNotExist) {
				return code, fmt.Errorf("%w; name a shell that the node has with --shell", err)
			}
			return code, err
		})
	}
	return a.runOnTerminal(ctx, "`swdt exec -- CMD` or `swdt powershell FILE`", programs...)
}

// shellArguments returns the arguments of a shell for a person.
func shellArguments(shell string) []string {
	name := strings.TrimSuffix(strings.ToLower(shell[strings.LastIndexAny(shell, `\/`)+1:]), ".exe")
	if name == "powershell" || name == "pwsh" {
		return []string{"-NoLogo"}
	}
	return nil
}

// onTerminal runs a program of a node that has a terminal of this size at first.
type onTerminal func(context.Context, *node.Node, *agentv1.TerminalSize, command.Streams) (int, error)

// runOnTerminal runs a program of one node on the user's terminal: the first that the node has. instead names
// the commands to use without a terminal.
func (a *app) runOnTerminal(ctx context.Context, instead string, programs ...onTerminal) error {
	terminal, err := a.terminal(instead)
	if err != nil {
		return err
	}
	s, err := a.oneNode("your terminal is for one node")
	if err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, _ config.Document, r ui.Reporter) (int, error) {
		ui.Done(r) // the program has the terminal now
		s.story.End()
		var runs []command.RunFunc
		for _, run := range programs {
			runs = append(runs, func(ctx context.Context, size *agentv1.TerminalSize, streams command.Streams) (int, error) {
				return run(ctx, n, size, streams)
			})
		}
		code, err := command.OnTerminal(ctx, terminal, runs...)
		if errors.Is(err, fault.ErrNotSupported) {
			err = fmt.Errorf("%w; without a terminal: `swdt powershell` or `swdt exec`", err)
		}
		return code, err
	})
	if err := fleet.Failures(results); err != nil {
		return err
	}
	if code := localCode(results[0].Value); code != exitDone {
		return &exitError{code: code} // the shell has printed the reason
	}
	return nil
}

// terminal returns the terminal at which the user sits. instead names the commands to use without one.
func (a *app) terminal(instead string) (console.Files, error) {
	in, isFile := a.streams.In.(*os.File)
	out, isTerminal := a.streams.Out.(*ui.Terminal)
	switch {
	case a.global.readsStdin():
		return console.Files{}, usagef("stdin has the node file already: name its file with --config")
	case !isFile || !ui.IsTerminal(in) || !isTerminal:
		return console.Files{}, usagef("stdin and stdout are no terminal, and a shell for a person needs one; use %s", instead)
	}
	return console.Files{In: in, Out: out.File()}, nil
}
