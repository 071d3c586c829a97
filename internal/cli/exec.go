package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/command"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/remedy"
	"github.com/swdt-dev/swdt/internal/ui"
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
		Use:        "exec [flags] -- CMD [ARG…]",
		SuggestFor: []string{"run", "ssh", "shell", "cmd"},
		Short:      "Run a program on nodes, with its streams and exit code",
		Long: `Runs a program on the node. Its output and errors come as they are, stdin goes to
it, and its exit code is swdt's. No shell is in between: arguments arrive as they
are written. What is built into a shell needs one: cmd /c dir, or swdt powershell.

On several nodes each line begins with the node's name, and stdin is empty.`,
		Example: examples(
			"exec -- hostname", "",
			`exec -- cmd /c dir "C:\k"`, "what is built into cmd",
			"exec -- ctr -n k8s.io containers ls", "",
		),
		Args: arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runExec(cmd.Context(), o, args) },
	})
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&o.folder, "folder", "", "working `folder` on the node (default the user's profile)")
	cmd.Flags().StringArrayVar(&o.environment, "env", nil, "environment variable to add, `NAME=value`; several times for several")
	cmd.Flags().BoolVar(&o.noStdin, "no-stdin", false, "leave stdin alone, as a loop that reads it needs")
	cmd.Flags().BoolVarP(&o.stdin, "stdin", "i", false, "send stdin to the program, as is done without it too")
	cmd.Flags().BoolVarP(&o.terminal, "tty", "t", false, "refused: a program gets no terminal from swdt yet")
	cmd.MarkFlagsMutuallyExclusive("stdin", "no-stdin")
	return cmd
}

func (o *execOptions) validate(args []string) error {
	if strings.HasPrefix(args[0], "-") {
		return usagef("%s stands after --, where the program to run begins: write swdt's flags before --", args[0])
	}
	for _, variable := range o.environment {
		if name, _, ok := strings.Cut(variable, "="); !ok || name == "" {
			return usagef("--env %s: write NAME=value", variable)
		}
	}
	return nil
}

func (a *app) runExec(ctx context.Context, o *execOptions, args []string) error {
	if err := o.validate(args); err != nil {
		return err
	}
	if o.terminal {
		return a.noTerminal(args)
	}
	args = forCommandShell(args)
	return a.runRemote(ctx, func(ctx context.Context, n *node.Node, streams command.Streams) (int, error) {
		if o.noStdin {
			streams.Stdin = nil
		}
		code, err := command.Run(ctx, n.Processes, &agentv1.RunCommand{
			Path: args[0], Args: args[1:], Folder: o.folder, Environment: o.environment,
		}, streams)
		if errors.Is(err, host.ErrNotExist) {
			return 0, fmt.Errorf("%w; %s", err, notFoundRemedy(args))
		}
		return code, err
	})
}

// runRemote runs something on every node: on one with its bytes untouched, on
// several with each line marked.
func (a *app) runRemote(ctx context.Context, run func(context.Context, *node.Node, command.Streams) (int, error)) error {
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	single := len(s.documents) == 1
	out, errOut := newLineWriter(a.streams.Out), newLineWriter(a.streams.Err)
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (int, error) {
		ui.Done(r) // the program has the terminal now
		if single {
			s.story.End()
			return run(ctx, n, command.Streams{Stdin: a.stdin(), Stdout: ui.Raw(a.streams.Out), Stderr: ui.Raw(a.streams.Err)})
		}
		stdout, stderr := out.prefixed(doc.Node.Metadata.Name+": "), errOut.prefixed(doc.Node.Metadata.Name+": ")
		code, err := run(ctx, n, command.Streams{Stdout: stdout, Stderr: stderr})
		if err = errors.Join(err, stdout.Close(), stderr.Close()); err == nil && code != 0 {
			err = &exitError{code: localCode(code), err: fmt.Errorf("exit code %d", code)}
		}
		return code, err
	})
	if err := fleet.Failures(results); err != nil || !single {
		return err
	}
	if code := localCode(results[0].Value); code != exitDone {
		return &exitError{code: code} // the program has said why
	}
	return nil
}

// forCommandShell gives arguments of cmd the quotes back that the shell here has
// taken: cmd cuts its command line up by itself, at every space. What has cmd's
// own syntax in it stays as it is, and so does what follows /c or /k, which may
// be a whole command line.
func forCommandShell(args []string) []string {
	program := strings.ToLower(args[0][strings.LastIndexAny(args[0], `\/`)+1:])
	first := slices.IndexFunc(args, func(arg string) bool { return strings.EqualFold(arg, "/c") || strings.EqualFold(arg, "/k") })
	if program != "cmd" && program != "cmd.exe" || first < 0 {
		return args
	}
	quoted := slices.Clone(args)
	for i := first + 2; i < len(args); i++ {
		if strings.ContainsAny(args[i], " \t") && !strings.ContainsAny(args[i], `"&|<>^`) {
			quoted[i] = `"` + args[i] + `"`
		}
	}
	return quoted
}

// localCode fits a Windows exit code (32 bits, perhaps an NTSTATUS) into what
// this machine's shells can see.
func localCode(code int) int {
	if code < 0 || code > 255 {
		return exitFailed
	}
	return code
}

// notFoundRemedy says how to run what is not a program.
func notFoundRemedy(args []string) string {
	name := strings.ToLower(args[0])
	switch {
	case slices.Contains(cmdBuiltins(), name):
		return args[0] + " is built into cmd: " + remedy.Command(append([]string{"exec", "--", "cmd", "/c"}, args...)...)
	case strings.Contains(name, "-") || slices.Contains(powershellNames(), name):
		return "if it is PowerShell's: " + remedy.Command("powershell", "--"+commandFlag, strings.Join(args, " "))
	case strings.ContainsAny(name, `\/`):
		return "check the path on the node"
	}
	return "give its full path, or add its folder to the node's PATH (spec.setup.path)"
}

func cmdBuiltins() []string {
	return []string{
		"assoc", "break", "call", "cd", "chdir", "cls", "color", "copy", "date", "del", "dir", "echo", "endlocal", "erase",
		"for", "ftype", "goto", "if", "md", "mkdir", "mklink", "move", "path", "pause", "popd", "prompt", "pushd", "rd",
		"rem", "ren", "rename", "rmdir", "set", "setlocal", "shift", "start", "time", "title", "type", "ver", "verify", "vol",
	}
}

func powershellNames() []string {
	return []string{"cat", "cp", "gc", "gci", "gps", "gsv", "ls", "mv", "ps", "pwd", "rm", "select", "sls"}
}
