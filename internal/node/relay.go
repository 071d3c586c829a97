package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// relayChunk is the most data in one message of a relay, in bytes.
const relayChunk = 32<<10 - 64

// relays returns the client for pipes and ports: on a further channel if an agent starts there, else on
// the connection's first channel.
func (n *Node) relays(ctx context.Context) (agentv1.NetworkClient, error) {
	caller, err := n.second(ctx, func(l *link) *secondLink { return &l.relays })
	if err != nil || caller == nil {
		return n.Network, err
	}
	return agentv1.NewNetworkClient(caller), nil
}

// openRelay opens a stream, sends its first message, and waits for the answer that the agent is connected.
// what names the agent's connection in errors. ctx bounds only the opening; cancel ends the stream.
func openRelay[Request, Reply any](ctx context.Context, what string,
	open func(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[Request, Reply], error), first *Request) (
	stream grpc.BidiStreamingClient[Request, Reply], cancel context.CancelFunc, err error) {
	// The stream outlives ctx.
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, cancel)
	if stream, err = open(streaming); err == nil {
		// An error of Send only means that the stream has ended; Recv returns the cause.
		if err = stream.Send(first); err == nil || err == io.EOF {
			_, err = stream.Recv()
		}
	}
	if unhook() && err == nil {
		return stream, cancel, nil
	}
	cancel()
	if ctx.Err() != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", what, ctx.Err())
	}
	return nil, nil, err // the agent's error names what was attempted
}

// relay is this machine's end of bytes that the agent relays. It has the parts of net.Conn that pipes and
// ports have in common. Deadlines are not supported.
type relay struct {
	send func(data []byte) error
	// receive returns the next bytes, which may be none. Its error is the result of all further reads.
	receive func() ([]byte, error)
	cancel  context.CancelFunc

	closed  atomic.Bool
	writing sync.Mutex
	ended   bool // no byte is written any more; guarded by writing
	reading sync.Mutex
	unread  []byte
	last    error // of receive; guarded by reading
}

// Read implements net.Conn.
func (r *relay) Read(p []byte) (int, error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	for len(r.unread) == 0 {
		if r.last == nil && !r.closed.Load() {
			r.unread, r.last = r.receive()
		}
		switch {
		case r.closed.Load():
			return 0, net.ErrClosed
		case r.last != nil:
			return 0, r.last
		}
	}
	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

// Write implements net.Conn. If the stream has ended, the error is io.ErrClosedPipe, and Read returns the
// cause.
func (r *relay) Write(p []byte) (written int, err error) {
	r.writing.Lock()
	defer r.writing.Unlock()
	for written < len(p) {
		if r.closed.Load() || r.ended {
			return written, net.ErrClosed
		}
		chunk := p[written:min(len(p), written+relayChunk)]
		switch err := r.send(chunk); {
		case err == io.EOF:
			return written, io.ErrClosedPipe
		case err != nil:
			return written, err
		}
		written += len(chunk)
	}
	return written, nil
}

// LocalAddr implements net.Conn.
func (r *relay) LocalAddr() net.Addr { return pipeAddr("swdt") }

// SetDeadline implements net.Conn.
func (r *relay) SetDeadline(time.Time) error { return os.ErrNoDeadline }

// SetReadDeadline implements net.Conn.
func (r *relay) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetWriteDeadline implements net.Conn.
func (r *relay) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
