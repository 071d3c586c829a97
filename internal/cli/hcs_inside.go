package cli

import (
	"context"

	"github.com/spf13/cobra"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/hcs"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/console"
)

const containerHelp = `CONTAINER is NAMESPACE/POD/CONTAINER, NAMESPACE/POD if the pod has one container,
or the beginning of an ID of "swdt hcs list" or "swdt cri containers".

Through the container runtime (--method cri) stdout and stderr stay apart and the
exit code is that of the command; output arrives at the end, at most 16 MB. A
container that the runtime does not know is reached by hcsdiag.exe of the node
(--method hcsdiag), with the exit code and the streams of hcsdiag.`

// anyMethod is the value of --method that uses the runtime if the runtime knows the container, else
// hcsdiag.
const anyMethod = "auto"

type insideOptions struct{ method string }

func (o *insideOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.method, "method", anyMethod, "`method` that enters the container: auto, cri or hcsdiag")
	must(cmd.RegisterFlagCompletionFunc("method", cobra.FixedCompletions([]string{"auto", "cri", "hcsdiag"},
		cobra.ShellCompDirectiveNoFileComp)))
}

func (o *insideOptions) validate() error {
	switch o.method {
	case anyMethod, string(hcs.ByRuntime), string(hcs.ByTool):
		return nil
	}
	return usagef("--method %s: use auto, cri or hcsdiag", o.method)
}

func (a *app) hcsExecCommand() *cobra.Command {
	o := &insideOptions{}
	var stdin, terminal bool
	cmd := forNodes(&cobra.Command{
		Use: "exec [flags] CONTAINER -- CMD [ARG…]", Short: "Run a command in a container",
		Long: "Runs a command in a container of the node.\n\n" + containerHelp + `

With -i the command has your stdin, and with -t, or -it, your terminal, as in
"swdt shell"; its output then arrives at once, without a limit.`,
		Example: examples(
			"hcs exec default/web -- ipconfig", "",
			`hcs exec default/web -- cmd /c dir C:\`, "a command that is built into cmd",
			"hcs exec -it default/web -- cmd", "a shell in the container",
		),
		Args: arguments(cobra.MinimumNArgs(2)), ValidArgsFunction: a.completeContainers,
		RunE: func(cmd *cobra.Command, args []string) error {
			work := func(ctx context.Context, in hcs.Inside, s command.Streams) (int, error) {
				return in.Exec(ctx, args[1:], s)
			}
			switch {
			case terminal:
				files, err := a.terminal("`swdt hcs exec CONTAINER -- CMD`, without -t")
				if err != nil {
					return err
				}
				work = onTerminalInside(files, args[1:])
			case stdin:
				work = func(ctx context.Context, in hcs.Inside, s command.Streams) (int, error) {
					s.Stdin = a.stdin()
					return in.Interact(ctx, args[1:], nil, s)
				}
			}
			return a.runInside(cmd.Context(), o, args[0], work)
		},
	})
	cmd.Flags().BoolVarP(&stdin, "stdin", "i", false, "send stdin to the command")
	cmd.Flags().BoolVarP(&terminal, "tty", "t", false, "give the command your terminal")
	o.addFlags(cmd)
	return cmd
}

// onTerminalInside returns the work that runs a command of a container on your terminal.
func onTerminalInside(files console.Files, args []string) hcs.Work {
	return func(ctx context.Context, in hcs.Inside, _ command.Streams) (int, error) {
		return command.OnTerminal(ctx, files, func(ctx context.Context, size *agentv1.TerminalSize, s command.Streams) (int,
			error) {
			return in.Interact(ctx, args, size, s)
		})
	}
}

func (a *app) hcsReadCommand() *cobra.Command {
	o := &insideOptions{}
	cmd := forNodes(&cobra.Command{
		Use: "read [flags] CONTAINER FILE", Short: "Write a file of a container to stdout",
		Long: "Writes a file of a container to stdout.\n\n" + containerHelp + `

By default cmd.exe in the container types the file, which suits text: UTF-16
with a byte order mark arrives in the code page of the container, and a zero
byte may end it. For other files use --method hcsdiag.`,
		Example: examples(
			`hcs read default/web 'C:\Windows\System32\drivers\etc\hosts'`, "",
		),
		Args: arguments(cobra.ExactArgs(2)), ValidArgsFunction: a.completeContainers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runInside(cmd.Context(), o, args[0], func(ctx context.Context, in hcs.Inside,
				s command.Streams) (int, error) {
				return in.Read(ctx, args[1], s)
			})
		},
	})
	o.addFlags(cmd)
	return cmd
}

func (a *app) runInside(ctx context.Context, o *insideOptions, name string, work hcs.Work) error {
	if err := o.validate(); err != nil {
		return err
	}
	s, err := a.oneNode("a container is on one node")
	if err != nil {
		return err
	}
	target := hcs.Target{Name: name, Via: hcs.Way(o.method)}
	if o.method == anyMethod {
		target.Via = ""
	}
	streams := command.Streams{Stdout: ui.Raw(a.streams.Out), Stderr: ui.Raw(a.streams.Err)}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (int,
		error) {
		target.Pipe = doc.RuntimePipe()
		found := func() {
			ui.Done(r)
			s.story.End()
		}
		return hcs.Into(ctx, n, target, streams, r, found, work)
	})
	if err := fleet.Failures(results); err != nil {
		return err
	}
	if code := localCode(results[0].Value); code != exitDone {
		return &exitError{code: code} // the program has printed the reason
	}
	return nil
}

// oneNode begins a command that works on exactly one node. If there are more nodes, or none, the error
// contains because, the reason for this limit.
func (a *app) oneNode(because string) (*session, error) {
	s, err := a.begin()
	if err != nil {
		return nil, err
	}
	if len(s.documents) != 1 {
		return nil, usagef("%s, and there are %d nodes: choose one with --node", because, len(s.documents))
	}
	s.quiet = true
	return s, nil
}
