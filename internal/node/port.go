package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// DialPort connects by TCP to a port of the node itself. The agent dials only loopback addresses and
// the addresses of the node's interfaces: for any other address DialPort returns ErrPermission. If no
// process listens, DialPort returns ErrNotExist. ctx bounds only the time until the port is
// connected. The connection shares its channel with the pipes (see DialPipe).
func (n *Node) DialPort(ctx context.Context, address netip.AddrPort) (*PortConn, error) {
	client, err := n.relays(ctx)
	if err != nil {
		return nil, err
	}
	// The stream outlives ctx.
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, cancel)
	stream, err := connectPort(streaming, client, address)
	if !unhook() || err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connect to %s on the node: %w", address, ctx.Err())
		}
		return nil, err // the agent's error names what was attempted
	}
	return &PortConn{stream: stream, cancel: cancel, address: net.TCPAddrFromAddrPort(address)}, nil
}

func connectPort(ctx context.Context, client agentv1.NetworkClient, address netip.AddrPort) (portStream, error) {
	stream, err := client.Connect(ctx)
	if err != nil {
		return nil, err
	}
	// An error of Send only means that the stream has ended; Recv returns the cause.
	if err := stream.Send(&agentv1.ConnectRequest{Address: address.String()}); err != nil && err != io.EOF {
		return nil, err
	}
	if _, err := stream.Recv(); err != nil {
		return nil, err
	}
	return stream, nil
}

type portStream = grpc.BidiStreamingClient[agentv1.ConnectRequest, agentv1.ConnectReply]

// PortConn is this machine's end of a connection to a TCP port of the node. Its directions end
// separately. Deadlines are not supported.
type PortConn struct {
	stream  portStream
	cancel  context.CancelFunc
	address net.Addr

	closed  atomic.Bool
	writing sync.Mutex
	ended   bool // CloseWrite was called; guarded by writing
	reading sync.Mutex
	unread  []byte
	last    error // the result of further reads; guarded by reading
}

// Read returns io.EOF after the peer has closed its direction.
func (c *PortConn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for len(c.unread) == 0 {
		if c.last == nil {
			c.receive()
		}
		switch {
		case c.closed.Load():
			return 0, net.ErrClosed
		case c.last != nil:
			return 0, c.last
		}
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// errEmpty is the error of a reply without data. No agent sends it, and an endless series of them would
// keep a reader busy for ever.
var errEmpty = errors.New("the node's answer to Network/Connect is empty")

// receive receives one reply. The regular end of the call is io.EOF only after the reply that
// announces the end of the data: without that reply, data may be missing.
func (c *PortConn) receive() {
	reply, err := c.stream.Recv()
	switch {
	case err == io.EOF:
		c.last = io.ErrUnexpectedEOF
	case err != nil:
		c.last = err
	case reply.GetEnd():
		c.last = io.EOF
	case len(reply.GetData()) == 0:
		c.last = errEmpty
	}
	c.unread = reply.GetData()
}

func (c *PortConn) Write(p []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for written < len(p) {
		if c.closed.Load() || c.ended {
			return written, net.ErrClosed
		}
		chunk := p[written:min(len(p), written+pipeChunk)]
		switch err := c.stream.Send(&agentv1.ConnectRequest{Data: chunk}); {
		case err == io.EOF:
			return written, io.ErrClosedPipe // Read returns the cause
		case err != nil:
			return written, err
		}
		written += len(chunk)
	}
	return written, nil
}

// CloseWrite ends the direction to the peer, which reads the end after the written bytes.
func (c *PortConn) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return nil
	}
	c.ended = true
	return c.stream.CloseSend()
}

// Close ends both directions at once. Bytes that the peer has not received yet may be lost; to send
// them, call CloseWrite and read to the end first.
func (c *PortConn) Close() error {
	c.closed.Store(true)
	c.cancel()
	return nil
}

func (c *PortConn) LocalAddr() net.Addr  { return pipeAddr("swdt") }
func (c *PortConn) RemoteAddr() net.Addr { return c.address }

func (c *PortConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *PortConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *PortConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
