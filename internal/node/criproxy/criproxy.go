// Package criproxy gives a node's container runtime an address on your machine, for clients that
// cannot use SSH. A proxy listens on a socket that only the user who runs swdt can access, or on
// loopback, and relays the bytes of each connection to the node. It neither parses nor changes the
// bytes, so that every protocol of the runtime's pipe (CRI, containerd's own API) works.
//
//   - listen.go: the addresses at which a proxy may listen
//   - relay.go: one connection
//   - keeper.go: the connection to the node, replaced when it breaks
//   - refuse.go: the error that a client gets if the runtime cannot be reached
package criproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

// Dial connects to the runtime.
type Dial func(context.Context) (net.Conn, error)

// Serve relays every connection that listener accepts. It returns nil when ctx has ended, a
// *HopelessError when further dialing cannot succeed, and any other error if the listener fails. It
// closes the listener and every connection before it returns.
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

// accepted returns the result of Serve after Accept has failed with err.
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

// serve serves one client's connection until it ends.
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
