package push

import (
	"context"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// view is a node as it was when it inspected itself.
type view struct {
	facts        *agentv1.FactsReply
	components   []seen
	transactions []*agentv1.Transaction
	traces       tracerecord.Record // the changes that `swdt trace` made
}

// seen is a component with its state on the node.
type seen struct {
	*component
	state *agentv1.ComponentState
}

// inspect asks the node, in one call, for everything that decide needs. It also reads the record of
// `swdt trace` if the command line of a component could change.
func (w *work) inspect(ctx context.Context) (view, error) {
	request := &agentv1.InspectRequest{}
	for _, c := range w.components {
		request.Components = append(request.Components, c.inspect())
	}
	reply, err := w.node.Swap.Inspect(ctx, request)
	if err != nil {
		return view{}, fmt.Errorf("look at the node: %w", err)
	}
	if got := len(reply.GetComponents()); got != len(w.components) {
		return view{}, fmt.Errorf("look at the node: asked for %d components, and the node reported %d",
			len(w.components), got)
	}
	now := view{facts: reply.GetFacts(), transactions: reply.GetTransactions()}
	for i, c := range w.components {
		now.components = append(now.components, c.see(reply.GetComponents()[i]))
	}
	now.traces, err = w.traces(ctx)
	return now, err
}

func (c *component) inspect() *agentv1.InspectComponent {
	return &agentv1.InspectComponent{
		Name: c.spec.Name, Destination: c.spec.Destination, Service: c.spec.RunBy(), AskVersion: c.reportsVersion(),
	}
}

// reportsVersion reports whether the binary may be run with --version. An unknown binary might do anything, so swdt
// runs it only if the node file wants a version.
func (c *component) reportsVersion() bool {
	known := []string{"kubelet", "containerd", "kube-proxy"}
	return c.spec.Version != "" || slices.Contains(known, strings.ToLower(c.spec.Name))
}

// see adds the state of the component on the node to its result.
func (c *component) see(state *agentv1.ComponentState) seen {
	c.result.PreviousSHA256 = state.GetSha256()
	c.result.Version.Before = state.GetVersion()
	if state.GetService() != nil {
		c.result.Service = serviceOf(state.GetService())
	}
	return seen{component: c, state: state}
}

// traces reads the record of the changes that `swdt trace` has made. If no component has Args, no
// command line can change, and traces returns an empty record without reading.
func (w *work) traces(ctx context.Context) (tracerecord.Record, error) {
	if !slices.ContainsFunc(w.components, func(c *component) bool { return c.spec.Args != nil }) {
		return tracerecord.Record{}, nil
	}
	return tracerecord.Load(ctx, func(ctx context.Context, path string) ([]byte, error) {
		return smallfile.Read(ctx, w.node, path)
	})
}
