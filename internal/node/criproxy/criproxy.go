// Package criproxy gives a node's container runtime an address on your machine, for clients that
// cannot use SSH. A proxy listens on a socket that only the user who runs swdt can access, or on
// loopback, and relays each connection to the node. It relays every gRPC call with its messages as
// they are (CRI, containerd's own API), and the bytes of any other protocol. It changes only one
// thing: the URLs with which the runtime answers Exec, Attach and PortForward, which lead to a port
// of the node, become URLs of a port of your machine, see package streaming.
//
//   - listen.go: the addresses at which a proxy may listen
//   - sniff.go: whether a connection carries gRPC
//   - calls.go: a connection with gRPC calls
//   - urls.go: the answers to Exec, Attach and PortForward
//   - single.go: a listener for one connection
//   - relay.go: a connection with another protocol
//   - keeper.go: the connection to the node, replaced when it breaks
package criproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming"
)

// Dial connects to the runtime.
type Dial func(context.Context) (net.Conn, error)

// Dialer connects to the node. A *Keeper is a Dialer.
type Dialer interface {
	Dial(ctx context.Context) (net.Conn, error)                                   // to the runtime
	DialPort(ctx context.Context, address netip.AddrPort) (streaming.Conn, error) // to a port of the node
}

// Serve relays every connection that listener accepts. It returns nil when ctx has ended, a
// *HopelessError when further dialing cannot succeed, and any other error if the listener fails. It
// closes the listener and every connection before it returns.
func Serve(ctx context.Context, listener net.Listener, dialer Dialer) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	streams := streaming.New(ctx, dialer.DialPort)
	defer streams.Close()
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
			if err := serve(ctx, local, dialer.Dial, streams); errors.As(err, &hopeless) {
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
func serve(ctx context.Context, local net.Conn, dial Dial, streams *streaming.Relay) error {
	defer local.Close()
	defer context.AfterFunc(ctx, func() { local.Close() })()
	local, grpc, err := sniff(local)
	if err != nil {
		return err
	}
	if grpc {
		return relayCalls(ctx, local, dial, streams)
	}
	remote, err := dial(ctx)
	if err != nil {
		return err
	}
	relay(ctx, local, remote)
	return nil
}
