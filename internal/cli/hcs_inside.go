package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/command"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/hcs"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

const containerHelp = `CONTAINER is NAMESPACE/POD/CONTAINER, NAMESPACE/POD where it has one container, or
the beginning of an ID of "swdt hcs list" or "swdt cri containers".

Through the container runtime (--via cri) streams stay apart and the exit code is the
command's; its output comes at the end, at most 16 MB of it. A container that the
runtime does not know is reached by the node's own hcsdiag.exe (--via hcsdiag), whose
exit code and streams are as it makes them.`

type insideOptions struct{ via string }

func (o *insideOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.via, "via", "auto", "`way` into the container: auto, cri or hcsdiag")
	must(cmd.RegisterFlagCompletionFunc("via", cobra.FixedCompletions([]string{"auto", "cri", "hcsdiag"}, cobra.ShellCompDirectiveNoFileComp)))
}

func (o *insideOptions) validate() error {
	switch o.via {
	case "auto", string(hcs.ByRuntime), string(hcs.ByTool):
		return nil
	}
	return usagef("--via %s: use auto, cri or hcsdiag", o.via)
}

func (a *app) hcsExecCommand() *cobra.Command {
	o := &insideOptions{}
	cmd := forNodes(&cobra.Command{
		Use: "exec [flags] CONTAINER -- CMD [ARG…]", Short: "Run a command in a container",
		Long: "Runs a command in a container of the node.\n\n" + containerHelp,
		Example: examples(
			"hcs exec default/web -- ipconfig", "",
			`hcs exec default/web -- cmd /c dir C:\`, "what is built into cmd",
		),
		Args: arguments(cobra.MinimumNArgs(2)), ValidArgsFunction: a.completeContainers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runInside(cmd.Context(), o, args[0], func(ctx context.Context, in hcs.Inside, s command.Streams) (int, error) {
				return in.Exec(ctx, args[1:], s)
			})
		},
	})
	o.addFlags(cmd)
	return cmd
}

func (a *app) hcsReadCommand() *cobra.Command {
	o := &insideOptions{}
	cmd := forNodes(&cobra.Command{
		Use: "read [flags] CONTAINER FILE", Short: "Write a file of a container to stdout",
		Long: "Writes a file of a container to stdout.\n\n" + containerHelp + `

The runtime has the container's cmd.exe type the file, which is for text: UTF-16 with a
byte order mark comes as the container's code page, and zero bytes may end it. For
other files there is --via hcsdiag.`,
		Example: examples(
			`hcs read default/web 'C:\Windows\System32\drivers\etc\hosts'`, "",
		),
		Args: arguments(cobra.ExactArgs(2)), ValidArgsFunction: a.completeContainers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runInside(cmd.Context(), o, args[0], func(ctx context.Context, in hcs.Inside, s command.Streams) (int, error) {
				return in.Read(ctx, args[1], s)
			})
		},
	})
	o.addFlags(cmd)
	return cmd
}

// insideWork is what is done in a container; it gives an exit code.
type insideWork func(context.Context, hcs.Inside, command.Streams) (int, error)

func (a *app) runInside(ctx context.Context, o *insideOptions, name string, work insideWork) error {
	if err := o.validate(); err != nil {
		return err
	}
	s, err := a.oneNode("a container is on one node")
	if err != nil {
		return err
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (code int, err error) {
		streams := command.Streams{Stdout: ui.Raw(a.streams.Out), Stderr: ui.Raw(a.streams.Err)}
		err = withRuntime(ctx, n, doc, r, func(runtime runtimev1.RuntimeServiceClient) error {
			in, err := findInside(ctx, o.via, name, n, runtime)
			if err != nil {
				return err
			}
			ui.Done(r)
			s.story.End()
			code, err = work(ctx, in, streams)
			if in.Way == hcs.ByTool && errors.Is(err, host.ErrNotExist) {
				return fmt.Errorf("%w; hcsdiag.exe comes with Windows' feature Containers or Hyper-V", err)
			}
			return err
		})
		return code, err
	})
	if err := fleet.Failures(results); err != nil {
		return err
	}
	if code := localCode(results[0].Value); code != exitDone {
		return &exitError{code: code} // the program has said why
	}
	return nil
}

// oneNode begins a command that is about one node.
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

// findInside finds the container, and the way into it: the runtime's where it
// knows it.
func findInside(ctx context.Context, via, name string, n *node.Node, runtime runtimev1.RuntimeServiceClient) (hcs.Inside, error) {
	in := hcs.Inside{Way: hcs.ByRuntime, Runtime: runtime, Processes: n.Processes}
	owners, asked := hcs.Owners(ctx, runtime)
	if asked != nil && via == string(hcs.ByRuntime) {
		return in, asked
	}
	owner, err := hcs.FindOwner(owners, name, true)
	var unknown *hcs.NotFoundError
	switch {
	case err == nil && via != string(hcs.ByTool):
		in.ID = owner.ID
		return in, nil
	case err == nil:
		name = owner.ID
	case !errors.As(err, &unknown) || via == string(hcs.ByRuntime):
		return in, err
	}
	systems, err := hcs.List(ctx, n.Compute)
	if err != nil {
		return in, errors.Join(asked, err)
	}
	system, err := hcs.FindSystem(systems, name)
	if err != nil {
		return in, errors.Join(asked, err)
	}
	in.Way, in.ID = hcs.ByTool, system.ID
	return in, nil
}
