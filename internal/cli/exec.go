package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

type execOptions struct {
	folder      string
	environment []string
	noStdin     bool
	stdin       bool
	terminal    bool
}

func (a *app) execCommand() *cobra.Command {
	o := &execOptions{}
	cmd := forNodes(&cobra.Command{
		Use:   "exec [flags] -- CMD [ARG…]",
		Short: "Run a program on nodes",
		Long: `Runs a program on the node with its stdin, stdout and stderr. Its exit code is
the exit code of swdt. No shell is in between: arguments arrive as they are
written. Commands that are built into a shell need one: cmd /c dir, or swdt
powershell.

With -t, or -it, the program has your terminal, as in "swdt shell".

On several nodes each line begins with the node's name, and stdin is empty.`,
		Example: examples(
			"exec -- hostname", "",
			"exec win-1 -- hostname", "on one node",
			`exec -- cmd /c dir "C:\k"`, "a command that is built into cmd",
			"exec -- ctr -n k8s.io containers ls", "",
			"exec -it -- diskpart", "a program that asks questions",
		),
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runExec(cmd.Context(), o, args) },
	})
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&o.folder, "folder", "", "working `folder` on the node (default the user's profile)")
	cmd.Flags().StringArrayVar(&o.environment, "env",
		nil, "environment variable to add, `NAME=value`; repeat the flag for more")
	cmd.Flags().BoolVar(&o.noStdin, "no-stdin", false, "do not read stdin, for a loop that reads it itself")
	cmd.Flags().BoolVarP(&o.stdin, "stdin", "i", false, "send stdin to the program, which is the default")
	cmd.Flags().BoolVarP(&o.terminal, "tty", "t", false, "give the program your terminal, as -it with kubectl")
	cmd.MarkFlagsMutuallyExclusive("stdin", "no-stdin")
	cmd.MarkFlagsMutuallyExclusive("tty", "no-stdin")
	return cmd
}

func (o *execOptions) validate(args []string) error {
	if strings.HasPrefix(args[0], "-") {
		return usagef("%s follows --, after which the program to run begins: write swdt's flags before --", args[0])
	}
	for _, variable := range o.environment {
		if name, _, ok := strings.Cut(variable, "="); !ok || name == "" {
			return usagef("--env %s: write NAME=value", variable)
		}
	}
	return nil
}

func (a *app) runExec(ctx context.Context, o *execOptions, args []string) error {
	args = a.nodeBeforeDashes(args)
	if err := o.validate(args); err != nil {
		return err
	}
	line := command.ForShell(args)
	program := &agentv1.RunCommand{Path: line[0], Args: line[1:], Folder: o.folder, Environment: o.environment}
	run := func(ctx context.Context, n *node.Node, streams command.Streams) (int, error) {
		code, err := command.Run(ctx, n.Processes, program, streams)
		if errors.Is(err, fault.ErrNotExist) {
			return 0, fmt.Errorf("%w; %s", err, command.NotFoundRemedy(args))
		}
		return code, err
	}
	if o.terminal {
		const instead = "`swdt exec -- CMD` or `swdt powershell FILE`, without -t"
		return a.runOnTerminal(ctx, instead, func(ctx context.Context, n *node.Node, size *agentv1.TerminalSize,
			streams command.Streams) (int, error) {
			program.Terminal = size
			return run(ctx, n, streams)
		})
	}
	return a.runRemote(ctx, func(ctx context.Context, n *node.Node, streams command.Streams) (int, error) {
		if o.noStdin {
			streams.Stdin = nil
		}
		return run(ctx, n, streams)
	})
}

// runRemote runs a program on every node. From one node it copies the output
// unchanged; from several it marks each line with the node's name.
func (a *app) runRemote(ctx context.Context, run func(context.Context, *node.Node, command.Streams) (int,
	error)) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	single := len(s.documents) == 1
	out, errOut := ui.NewLineWriter(a.streams.Out), ui.NewLineWriter(a.streams.Err)
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (int,
		error) {
		ui.Done(r) // the program has the terminal now
		if single {
			s.story.End()
			return run(ctx, n, command.Streams{Stdin: a.stdin(), Stdout: ui.Raw(a.streams.Out),
				Stderr: ui.Raw(a.streams.Err)})
		}
		stdout, stderr := out.Prefixed(doc.Node.Metadata.Name+": "), errOut.Prefixed(doc.Node.Metadata.Name+": ")
		code, err := run(ctx, n, command.Streams{Stdout: stdout, Stderr: stderr})
		if err = errors.Join(err, stdout.Close(), stderr.Close()); err == nil && code != 0 {
			err = &exitError{code: localCode(code), err: fmt.Errorf("exit code %s", windowstext.ExitCode(code))}
		}
		return code, err
	})
	if err := fleet.Failures(results); err != nil || !single {
		return err
	}
	if code := localCode(results[0].Value); code != exitDone {
		return &exitError{code: code} // the program has printed the reason
	}
	return nil
}

// localCode converts a Windows exit code (32 bits, perhaps an NTSTATUS) to an exit code of this
// machine: 0 to 255 as it is, any other code as 1.
func localCode(code int) int {
	if code < 0 || code > 255 {
		return exitFailed
	}
	return code
}
