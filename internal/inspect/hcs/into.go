package hcs

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Work is a function that Into calls for a container; it returns an exit code.
type Work func(context.Context, Inside, command.Streams) (int, error)

// Target names a container and the way to reach it.
type Target struct {
	Name string // a name that FindOwner or FindSystem finds
	Via  Way    // the way; "": the runtime if it knows the container, else hcsdiag
	Pipe string // the named pipe of the container runtime
}

// Into finds a container of a node, and then calls its last two arguments. The first of them can
// finish other output before the second, the work for the container, uses the streams.
func Into(
	ctx context.Context, n *node.Node, target Target, s command.Streams, r ui.Reporter, found func(), work Work,
) (code int, err error) {
	client, err := criclient.Open(ctx, n, target.Pipe, criclient.Options{Reconnect: r, Limit: criclient.AnswerLimit})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	in, err := find(ctx, n, target, client)
	if err != nil {
		return 0, err
	}
	in.Dial = func(ctx context.Context, address netip.AddrPort) (streaming.Conn, error) {
		conn, err := n.DialPort(ctx, address)
		if err != nil {
			return nil, err // and no nil pointer in an interface
		}
		return conn, nil
	}
	found()
	code, err = work(ctx, in, s)
	if in.Way == ByTool && errors.Is(err, fault.ErrNotExist) {
		return code, fmt.Errorf("%w; hcsdiag.exe comes with Windows' feature Containers or Hyper-V", err)
	}
	return code, err
}

// find returns the container and the way to reach it: target.Via if this is set, else the runtime
// if the runtime knows the container, else hcsdiag.
func find(ctx context.Context, n *node.Node, target Target, client *criclient.Client) (Inside, error) {
	in := Inside{Way: ByRuntime, Runtime: client.Runtime, Processes: n.Processes}
	name := target.Name
	owners, runtimeErr := Owners(ctx, client.Runtime)
	if runtimeErr != nil && target.Via == ByRuntime {
		return in, runtimeErr
	}
	owner, err := FindOwner(owners, name, true)
	var unknown *NotFoundError
	switch {
	case err == nil && target.Via != ByTool:
		in.ID = owner.ID
		return in, nil
	case err == nil:
		name = owner.ID
	case !errors.As(err, &unknown) || target.Via == ByRuntime:
		return in, err
	}
	systems, err := List(ctx, n.Compute)
	if err != nil {
		return in, errors.Join(runtimeErr, err)
	}
	system, err := FindSystem(systems, name)
	if err != nil {
		return in, errors.Join(runtimeErr, err)
	}
	in.Way, in.ID = ByTool, system.ID
	return in, nil
}
