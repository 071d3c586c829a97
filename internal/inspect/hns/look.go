package hns

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// LookOptions select the objects and the owners that Look reads.
type LookOptions struct {
	Filter  Filter
	Owners  bool   // reports whether Look asks the node's container runtime for the owners
	Cluster Known  // the pods and Services that the cluster listed
	Pipe    string // the named pipe of the container runtime
}

// Look reads the HNS objects of a node that the options select, and their owners. If the
// container runtime does not answer, the owners stay unknown and r gets a warning.
func Look(ctx context.Context, n *node.Node, o LookOptions, r ui.Reporter) (View, error) {
	state, err := Read(ctx, n.Compute)
	if errors.Is(err, fault.ErrNotSupported) {
		err = fmt.Errorf("%w; this Windows has no Host Network Service, which comes with the feature Containers: "+
			"`swdt setup` installs it", err)
	}
	if err != nil {
		return View{}, err
	}
	view := View{State: state.Select(o.Filter), All: state, Known: o.Cluster}
	if !o.Owners {
		return view, nil
	}
	view.Known.Here, err = PodsOf(ctx, n, o.Pipe, r)
	if ctx.Err() != nil {
		return view, ctx.Err()
	}
	view.Known.Runtime = err == nil
	if err != nil {
		r.Warn("the owners of endpoints are unknown, since the container runtime does not answer: %v", err)
	}
	return view, nil
}

// PodsOf asks a node's container runtime for the networks of the node's pods, with a time limit for
// each answer.
func PodsOf(ctx context.Context, n *node.Node, pipe string, r ui.Reporter) (pods []Pod, err error) {
	client, err := criclient.Open(ctx, n, pipe, criclient.Options{Reconnect: r, Limit: criclient.AnswerLimit})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return Pods(ctx, client.Runtime)
}
