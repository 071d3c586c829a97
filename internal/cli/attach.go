package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/attach"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/portforward"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

// buildDlv is how to make a dlv.exe for nodes.
const buildDlv = "GOOS=windows GOARCH=amd64 go install github.com/go-delve/delve/cmd/dlv@latest writes " +
	"$(go env GOPATH)/bin/windows_amd64/dlv.exe"

func (a *app) attachCommand() *cobra.Command {
	var dlv string
	var local uint16
	cmd := forNodes(&cobra.Command{
		Use:   "attach SERVICE",
		Short: "Attach Delve, the debugger of Go programs, to a service of a node",
		Long: `Brings a dlv.exe of yours to the node, attaches it to the process of a service, such
as kubelet or containerd, and forwards a free port of 127.0.0.1 of this machine to it.
It prints the line for "dlv connect" and the configuration for VS Code. The service
runs on until a client sets a breakpoint. Ctrl-C detaches Delve, leaves the service
running and removes dlv.exe from the node.

` + buildDlv + `.

A process that is stopped at a breakpoint answers no health check. Windows ends a
process with its debugger: if the connection to the node is lost, the service ends, and
swdt starts it again if it reconnects within ten minutes. The node may notice the loss
40 seconds late. A service that a push or another command has stopped stays stopped.
A Ctrl-C while Delve attaches detaches it when it has attached. While Delve is
attached, each account of the node can control the process through Delve's port on the
node's 127.0.0.1. Programs that were built with -ldflags "-s -w" have no names for
breakpoints.`,
		Example: examples(
			"attach kubelet --dlv dlv.exe", "",
			"attach containerd --dlv dlv.exe --local-port 2345", "the same port each time",
		),
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: notTwice(a.completeComponents),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runAttach(cmd.Context(), args[0], dlv, local)
		},
	})
	cmd.Flags().StringVar(&dlv, "dlv", "", "the debugger to bring: a `file`, dlv.exe for the node's processor")
	cmd.Flags().Uint16Var(&local, "local-port", 0, "`port` of 127.0.0.1 of this machine to listen at (default a free one)")
	must(cmd.MarkFlagFilename("dlv", "exe"))
	return cmd
}

func (a *app) runAttach(ctx context.Context, service, dlv string, local uint16) error {
	if dlv == "" {
		return usagef("--dlv is missing: name a dlv.exe; %s", buildDlv)
	}
	port, err := portforward.Parse(fmt.Sprintf("%d:1", local)) // the port of the node is dlv's choice
	if err != nil {
		return err
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	if len(s.documents) != 1 {
		return usagef("Delve debugs a service of one node, and there are %d: choose it with %s", len(s.documents),
			nodeFlagOf(a.invoked))
	}
	binary, err := source.Obtain(ctx, source.Request{URL: dlv, Executable: true}, s.story.Node(""))
	if errors.Is(err, fs.ErrNotExist) {
		return usagef("--dlv %s: there is no such file; %s", dlv, buildDlv)
	}
	if err != nil {
		return err
	}
	o := attach.Options{Service: service, Dlv: transfer.File{Binary: binary, Depot: s.depot()}, Stop: interrupt.Gracefully(ctx)}
	if o.Listener, err = portforward.Listen(ctx, port); err != nil {
		busy, _ := errors.AsType[*portforward.LocalPortError](err)
		return fmt.Errorf("listen for clients of Delve: %w; name another port with --local-port", busy.Err)
	}
	defer o.Listener.Close()
	o.Attached = func(r attach.Report) error { return a.print(r, r.WriteText) }
	return fleet.Failures(onNodes(ctx, s, func(ctx context.Context, n *node.Node, _ config.Document, r ui.Reporter) (struct{},
		error) {
		return struct{}{}, attach.Run(ctx, n, o, r)
	}))
}
