// Package criproxy gives a node's container runtime an address on this machine,
// for clients that know nothing of SSH: it listens on a socket of its user's, or
// on loopback, and relays the bytes of each connection to the node. Nothing in
// between is understood or changed, so that whatever the runtime speaks on its
// pipe (CRI, containerd's own API) passes.
//
//   - listen.go: where it may listen
//   - relay.go: one connection
//   - keeper.go: the way to the node, made again when it breaks
//   - refuse.go: what a client is told when there is no way
package criproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

// Dial reaches the runtime.
type Dial func(context.Context) (net.Conn, error)

// Serve relays every connection that listener accepts, until ctx ends or dialing
// has become hopeless: the error is then a *HopelessError. It closes the listener
// and every connection before it returns, and is nil when ctx ended.
func Serve(ctx context.Context, listener net.Listener, dial Dial) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	var connections sync.WaitGroup
	defer connections.Wait()
	defer stop(nil)
	for {
		local, err := listener.Accept()
		if err != nil {
			return accepted(ctx, err)
		}
		connections.Go(func() {
			var hopeless *HopelessError
			if err := serve(ctx, local, dial); errors.As(err, &hopeless) {
				stop(hopeless)
			}
		})
	}
}

// accepted is why nothing is accepted any more.
func accepted(ctx context.Context, err error) error {
	var hopeless *HopelessError
	switch {
	case errors.As(context.Cause(ctx), &hopeless):
		return hopeless
	case ctx.Err() != nil:
		return nil
	}
	return fmt.Errorf("accept a client: %w", err)
}

// serve is one client's connection, from beginning to end.
func serve(ctx context.Context, local net.Conn, dial Dial) error {
	defer local.Close()
	remote, err := dial(ctx)
	if err != nil {
		if ctx.Err() == nil {
			refuse(ctx, local, err)
		}
		return err
	}
	relay(ctx, local, remote)
	return nil
}
