package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criproxy"
	"github.com/swdt-dev/swdt/internal/node/portforward"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

func (a *app) forwardCommand() *cobra.Command {
	return forNodes(&cobra.Command{
		Use:     "forward [LOCAL:]PORT…",
		Aliases: []string{"port-forward"},
		Short:   "Forward ports of this machine to ports of a node",
		Long: `Listens on 127.0.0.1 of this machine and relays each connection to 127.0.0.1 of
the node, over the connection to the node, until Ctrl-C. No port is opened on the
node, and no other machine can use the ports here. It works with --via kubernetes,
too. If the connection is lost, swdt reconnects for the next one.

LOCAL is the port on this machine, PORT without LOCAL is the same port here, and
:PORT takes a free one, which is printed.`,
		Example: examples(
			"forward 10248", "kubelet's healthz: curl http://127.0.0.1:10248/healthz",
			"forward 9000:10250 :1338", "two ports",
		),
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, ports []string) error {
			accept := func(context.Context, *node.Node) error { return nil }
			return a.runForward(cmd.Context(), ports, accept, func(p *ui.Page, r portforward.Report) error { return r.WriteText(p) })
		},
	})
}

// runForward forwards the ports to one node, once check accepts the node. text writes the report for people.
func (a *app) runForward(ctx context.Context, ports []string, check func(context.Context, *node.Node) error,
	text func(*ui.Page, portforward.Report) error) error {
	ports = a.nodesOutOf(ports)
	if len(ports) == 0 {
		return usagef("[LOCAL:]PORT… is missing; usage: %s", a.invoked.UseLine())
	}
	forwards := make([]portforward.Forward, len(ports))
	for i, text := range ports {
		var err error
		if forwards[i].Port, err = portforward.Parse(text); err != nil {
			return a.noPort(err, ports)
		}
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	if n := len(s.documents); n > 1 {
		return usagef("the ports lead to one node, and there are %d: choose it with %s", n, nodeFlagOf(a.invoked))
	}
	for i := range forwards {
		if forwards[i].Listener, err = portforward.Listen(ctx, forwards[i].Port); err != nil {
			return fmt.Errorf("forward %s: %w", ports[i], err)
		}
		defer forwards[i].Listener.Close()
	}
	results := onNodes(ctx, s, func(ctx context.Context, n *node.Node, _ config.Document, r ui.Reporter) (struct{}, error) {
		if err := check(ctx, n); err != nil {
			return struct{}{}, err
		}
		report := portforward.NewReport(n.Name, forwards)
		if err := a.print(report, func(p *ui.Page) error { return text(p, report) }); err != nil {
			return struct{}{}, err
		}
		ui.Done(r)
		keeper := &criproxy.Keeper{Node: n, Reporter: r}
		return struct{}{}, portforward.Serve(ctx, forwards, keeper.DialAnyPort, r)
	})
	err = fleet.Failures(results)
	if cause := context.Cause(ctx); errors.As(cause, new(*InterruptedError)) {
		return cause
	}
	return err
}

// noPort returns the error for words that are not all ports. If the first one is a word before ports, as in kubectl
// port-forward, the error says how to name the node.
func (a *app) noPort(err error, words []string) error {
	_, first := portforward.Parse(words[0])
	if first == nil || len(words) == 1 {
		return usagef("%v", err)
	}
	line := append([]string{"forward", "-n", words[0]}, words[1:]...)
	return usagef("%v; %s chooses the node", err, remedy.Command(line...))
}
