package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) sandboxCommand() *cobra.Command {
	cmd := group("sandbox", "Run a local stand-in for a Windows node",
		a.sandboxUpCommand(), a.sandboxDownCommand(), a.sandboxStatusCommand(), a.sandboxServeCommand())
	cmd.AddCommand(a.sandboxShellCommand())
	cmd.Long = `Runs a node on this machine that behaves like a Windows node over SSH, to try
swdt on: nothing of it leaves 127.0.0.1.

  simulated   an in-memory Windows with the real swdt agent; needs nothing (default)
  wine        the real swdt-agent.exe under Wine, with a real Service Control
              Manager, registry and file locking

With --cluster the node has a control plane to join: one in memory with the
simulated driver, a real one with wine ("make lab" builds it).`
	cmd.Example = examples(
		"sandbox up", "prints the node file to use with -c",
		"sandbox up second --driver wine", "another one beside it",
		"sandbox ls", "the sandboxes that run",
		"sandbox down second", "",
	)
	return cmd
}

type sandboxOptions struct {
	sandbox.Options
}

func (o *sandboxOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.Name, "name", "", "`name` of the sandbox (default "+sandbox.DefaultName+")")
	flags.StringVar(&o.StateDir, "state-dir", "", "`folder` that sandboxes are kept in")
	must(cmd.MarkFlagDirname("state-dir"))
	must(cmd.RegisterFlagCompletionFunc("name", o.complete))
}

func (a *app) sandboxUpCommand() *cobra.Command {
	o := &sandboxOptions{}
	cmd := &cobra.Command{
		Use:        "up [NAME]",
		Short:      "Start a sandbox and print the node file to use",
		SuggestFor: []string{"start", "create", "run", "new"},
		Example: examples(
			"sandbox up", "",
			"sandbox up second", "another one beside it",
			`status -c "$(swdt sandbox up -o json | jq -r .config)"`, "in a script",
		),
		Args:              arguments(cobra.MaximumNArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := o.nameFrom(names); err != nil {
				return err
			}
			return a.runSandboxUp(cmd.Context(), o)
		},
	}
	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.Driver, "driver", sandbox.DefaultDriver,
		"the stand-in for Windows: "+strings.Join(sandbox.Drivers(), " or "))
	cmd.Flags().StringVar(&o.Shell, "shell", "", "default shell of its SSH server: "+strings.Join(sandbox.ShellNames(), ", ")+" (default cmd)")
	cmd.Flags().BoolVar(&o.Cluster, "cluster", false, "a Kubernetes control plane too, for the node to join")
	cmd.Flags().BoolVar(&o.KubeProxy, "with-kube-proxy", false,
		"a stand-in for kube-proxy on a simulated node with --cluster too")
	cmd.Flags().IntVar(&o.Pods, "pods", 0, "`number` of pods that a simulated node runs (default 1)")
	cmd.Flags().IntVar(&o.Port, "ssh-port", 0, "`port` to listen on (default a free one)")
	must(cmd.RegisterFlagCompletionFunc("driver", cobra.FixedCompletions(sandbox.Drivers(),
		cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("shell", cobra.FixedCompletions(sandbox.ShellNames(),
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (o *sandboxOptions) validateUp() error {
	switch {
	case !slices.Contains(sandbox.Drivers(), o.Driver):
		return usagef("--driver %s: use %s", o.Driver, strings.Join(sandbox.Drivers(), " or "))
	case o.Shell != "" && !slices.Contains(sandbox.ShellNames(), o.Shell):
		return usagef("--shell %s: use %s", o.Shell, strings.Join(sandbox.ShellNames(), ", "))
	case o.KubeProxy && (o.Driver != sandbox.DefaultDriver || !o.Cluster):
		return usagef("--with-kube-proxy: only a simulated node with --cluster has a stand-in for it; leave it out")
	case o.Port < 0 || o.Port > 65535:
		return usagef("--ssh-port %d: use 0 to 65535", o.Port)
	case o.Pods < 0 || o.Pods > sandbox.MostPods:
		return usagef("--pods %d: use 1 to %d", o.Pods, sandbox.MostPods)
	case o.Pods > 0 && (o.Driver != sandbox.DefaultDriver || o.Cluster):
		return usagef("--pods: only a simulated node without --cluster comes with pods; leave it out")
	}
	return nil
}

func (a *app) runSandboxUp(ctx context.Context, o *sandboxOptions) error {
	if err := o.validateUp(); err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	info, err := sandbox.Up(ctx, o.Options)
	if err != nil {
		return sandboxError(ctx, err)
	}
	return a.print(info, func(p *ui.Page) error { return writeSandboxUp(p, info) })
}

// sandboxServeCommand is the background process behind a sandbox.
func (a *app) sandboxServeCommand() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:    "serve",
		Short:  "The background process that `swdt sandbox up` starts",
		Hidden: true,
		Args:   arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			agent, err := a.env.Agent()
			if err != nil && !errors.Is(err, agentbin.ErrNotEmbedded) {
				return err
			}
			log := slog.New(slog.NewTextHandler(a.streams.Err, nil))
			return sandbox.RunBackground(cmd.Context(), state, agent, writeCloser(a.streams.Out), log)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "the sandbox's own `folder`")
	must(cmd.MarkFlagRequired("state"))
	return cmd
}

// writeCloser returns w with a Close that closes w if w can be closed, and does nothing if not.
func writeCloser(w io.Writer) io.WriteCloser {
	if closer, ok := w.(io.WriteCloser); ok {
		return closer
	}
	return notClosed{w}
}

type notClosed struct{ io.Writer }

func (notClosed) Close() error { return nil }
