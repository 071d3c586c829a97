// Package memnet is a TCP network in memory, for tests in a bubble of testing/synctest: unlike a goroutine that
// waits for the kernel's network, one that waits for this network lets the bubble's time pass.
package memnet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"google.golang.org/grpc/test/bufconn"
)

// bufferSize is how many bytes a connection holds that its reader has not read.
const bufferSize = 1 << 20

// Network has listeners on 127.0.0.1, and on addresses that a test chooses. Its zero value has none. It is safe for concurrent use.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener // by address
}

// Listen returns a listener on a free port.
func (n *Network) Listen() net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	l := &listener{Listener: bufconn.Listen(bufferSize)}
	for l.address == nil || n.listeners[l.address.String()] != nil {
		port := uint16(20_000 + rand.IntN(40_000)) // another one in each network
		l.address = net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
	}
	n.listeners[l.address.String()] = l
	return l
}

// ListenOn returns a listener on an address that no other listener has.
func (n *Network) ListenOn(address netip.AddrPort) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	l := &listener{Listener: bufconn.Listen(bufferSize), address: net.TCPAddrFromAddrPort(address)}
	n.listeners[address.String()] = l
	return l
}

// DialContext connects to a listener. The error is syscall.ECONNREFUSED if none listens on the address.
func (n *Network) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("connect to %s: %w", address, syscall.ECONNREFUSED)
	}
	conn, err := l.DialContext(ctx)
	if err != nil && ctx.Err() == nil { // bufconn's error of a closed listener
		return nil, fmt.Errorf("connect to %s: %w", address, syscall.ECONNREFUSED)
	}
	return conn, err
}

type listener struct {
	*bufconn.Listener
	address *net.TCPAddr
}

// Addr returns an address of TCP, as servers of HTTP expect it.
func (l *listener) Addr() net.Addr { return l.address }
