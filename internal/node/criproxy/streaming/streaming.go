// Package streaming gives the streaming server of a node's container runtime an address on your
// machine. The runtime answers Exec, Attach and PortForward with a URL, such as
// http://127.0.0.1:49152/exec/TOKEN, which only the node itself can reach. A Relay replaces it by a
// URL of a loopback port of your machine, and relays the connection that a client then makes.
//
// Every user of your machine can connect to a loopback port. So each URL of a Relay has a secret of
// its own in front of the runtime's path. A connection that does not name the secret of a URL that is
// still valid reaches nothing on the node. A secret is valid for one connection, as is the runtime's
// own token.
//
//   - streaming.go: the relay, its listener and its limits
//   - address.go: the URLs that a runtime may name
//   - offers.go: the URLs that were given to clients
//   - request.go: the head of a client's request
//   - copy.go: the bytes of a connection
package streaming

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Limits of a relay.
const (
	maxConnections = 256 // connections at a time; a further one waits
	// headTime bounds the time in which a client must have sent the head of its request.
	headTime = 30 * time.Second
	// idleTime is how long a connection stays that transfers nothing, as in containerd and CRI-O.
	idleTime = 4 * time.Hour
	// dialTime bounds the time for the connection on the node.
	dialTime = 2 * time.Minute
)

// Conn is a connection whose directions end separately.
type Conn interface {
	net.Conn
	CloseWrite() error
}

// Dial connects to a TCP port of the node itself. An address that is not the node's own is an error.
type Dial func(context.Context, netip.AddrPort) (Conn, error)

// Relay relays connections to streaming servers of one node.
type Relay struct {
	dial   Dial
	ctx    context.Context
	stop   context.CancelFunc
	offers offers
	idle   time.Duration // idleTime, except in tests

	mu          sync.Mutex
	listener    net.Listener // nil until the first URL
	connections sync.WaitGroup
}

// New returns a relay that dial connects to a node. It listens when the first URL is replaced, and
// until ctx ends or Close is called.
func New(ctx context.Context, dial Dial) *Relay {
	ctx, stop := context.WithCancel(ctx)
	return &Relay{dial: dial, ctx: ctx, stop: stop, idle: idleTime}
}

// Replace returns the URL at which a client on your machine reaches the streaming server that the
// runtime named. If the URL is not relayed, the error is an *AddressError. If too many URLs wait for
// their client, the error is ErrTooMany.
func (r *Relay) Replace(url string) (string, error) {
	t, err := parse(url)
	if err != nil {
		return "", err
	}
	at, err := r.listen()
	if err != nil {
		return "", fmt.Errorf("listen for the client of a streaming URL: %w", err)
	}
	secret, err := r.offers.add(t, time.Now())
	if err != nil {
		return "", err
	}
	return "http://" + at.String() + "/" + secret + t.path, nil
}

// Close ends the listener and every connection, and waits until they have ended.
func (r *Relay) Close() {
	r.stop()
	r.mu.Lock()
	listener := r.listener
	r.mu.Unlock()
	if listener != nil {
		_ = listener.Close() // it may be closed already, since its context has ended
	}
	r.connections.Wait()
}

// listen returns the address of the listener, which the first call makes.
func (r *Relay) listen() (net.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	if r.listener != nil {
		return r.listener.Addr(), nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r.listener = listener
	r.connections.Go(func() { r.accept(listener) })
	return listener.Addr(), nil
}

func (r *Relay) accept(listener net.Listener) {
	defer context.AfterFunc(r.ctx, func() { listener.Close() })()
	places := make(chan struct{}, maxConnections)
	for {
		select {
		case places <- struct{}{}:
		case <-r.ctx.Done():
			return
		}
		conn, err := listener.Accept()
		if err != nil {
			// The listener is closed, or this process has no more files. After the latter, the next
			// URL gets a new listener.
			r.forget(listener)
			return
		}
		r.connections.Go(func() {
			defer func() { <-places }()
			r.serve(conn.(*net.TCPConn))
		})
	}
}

func (r *Relay) forget(listener net.Listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = listener.Close()
	if r.listener == listener {
		r.listener = nil
	}
}

// serve serves one client's connection until it ends.
func (r *Relay) serve(local *net.TCPConn) {
	defer local.Close()
	defer context.AfterFunc(r.ctx, func() { local.Close() })()
	if local.SetReadDeadline(time.Now().Add(headTime)) != nil {
		return
	}
	request, err := readRequest(local)
	if err != nil {
		refuse(local, http.StatusBadRequest, err)
		return
	}
	t, ok := r.offers.take(request.secret, request.path, time.Now())
	if !ok {
		refuse(local, http.StatusNotFound, errors.New("this URL is not valid, or not any more: each one is valid for "+
			"one connection and some minutes; run the command again"))
		return
	}
	if local.SetReadDeadline(time.Time{}) != nil {
		return
	}
	remote, err := r.connect(t)
	if err != nil {
		refuse(local, http.StatusBadGateway, fmt.Errorf("connect to the runtime's streaming server: %w", err))
		return
	}
	relay(r.ctx, client{local, request.bytesTo(t)}, remote, r.idle)
}

func (r *Relay) connect(t target) (Conn, error) {
	ctx, done := context.WithTimeout(r.ctx, dialTime)
	defer done()
	return r.dial(ctx, t.address)
}

// refuse answers a request with the reason for which it is not relayed.
func refuse(local net.Conn, status int, reason error) {
	text := ui.Printable(reason.Error()) + "\n"
	_ = local.SetWriteDeadline(time.Now().Add(headTime))
	// If the client has gone, it needs no answer.
	_, _ = fmt.Fprintf(local, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"X-Content-Type-Options: nosniff\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(text), text)
}
