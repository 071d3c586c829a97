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

const (
	// pipeChunk is the most data in one message, in bytes.
	pipeChunk = 32<<10 - 64
	// pipeGoodbye is how long Close waits for the last written bytes to arrive.
	pipeGoodbye = 2 * time.Second
)

// DialPipe connects to a named pipe of a container runtime on the node. The agent relays only
// certain pipes (see package cri): for any other pipe DialPipe returns ErrPermission. If no process
// serves the pipe, DialPipe returns ErrNotExist. ctx bounds only the time until the pipe is
// connected. All pipes of a connection share one further channel with a second agent; when that
// channel ends, the pipes end. Each pipe has its own window, so that a pipe without a reader does
// not block the others. Deadlines are not supported.
func (n *Node) DialPipe(ctx context.Context, path string) (net.Conn, error) {
	client, err := n.relays(ctx)
	if err != nil {
		return nil, err
	}
	// The stream outlives ctx.
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, cancel)
	stream, err := connectPipe(streaming, client, path)
	if !unhook() || err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connect to pipe %s: %w", path, ctx.Err())
		}
		return nil, err // the agent's error names what was attempted
	}
	return &pipeConn{stream: stream, cancel: cancel, path: path}, nil
}

func connectPipe(ctx context.Context, client agentv1.NetworkClient, path string) (pipeStream, error) {
	stream, err := client.Pipe(ctx)
	if err != nil {
		return nil, err
	}
	// An error of Send only means that the stream has ended; Recv returns the cause.
	if err := stream.Send(&agentv1.PipeRequest{Pipe: path}); err != nil && err != io.EOF {
		return nil, err
	}
	if _, err := stream.Recv(); err != nil {
		return nil, err
	}
	return stream, nil
}

// relays returns the client for pipes: on a further channel if an agent starts there, else on the
// connection's first channel.
func (n *Node) relays(ctx context.Context) (agentv1.NetworkClient, error) {
	caller, err := n.second(ctx, func(l *link) *secondLink { return &l.relays })
	if err != nil || caller == nil {
		return n.Network, err
	}
	return agentv1.NewNetworkClient(caller), nil
}

type pipeStream = grpc.BidiStreamingClient[agentv1.PipeRequest, agentv1.PipeReply]

// pipeConn is this machine's end of a relayed pipe.
type pipeConn struct {
	stream pipeStream
	cancel context.CancelFunc
	path   string

	closed  atomic.Bool
	writing sync.Mutex
	reading sync.Mutex
	unread  []byte
}

func (c *pipeConn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for len(c.unread) == 0 {
		if c.closed.Load() {
			return 0, net.ErrClosed
		}
		reply, err := c.stream.Recv()
		switch {
		case err == nil:
			c.unread = reply.GetData()
		case c.closed.Load():
			return 0, net.ErrClosed
		default:
			return 0, err
		}
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

func (c *pipeConn) Write(p []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for written < len(p) {
		if c.closed.Load() {
			return written, net.ErrClosed
		}
		chunk := p[written:min(len(p), written+pipeChunk)]
		switch err := c.stream.Send(&agentv1.PipeRequest{Data: chunk}); {
		case err == io.EOF:
			return written, io.ErrClosedPipe // Read returns the cause
		case err != nil:
			return written, err
		}
		written += len(chunk)
	}
	return written, nil
}

// Close ends both directions of the pipe. It first waits until the written bytes have arrived, at
// most pipeGoodbye. If a Write is still under way, Close does not wait.
func (c *pipeConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	defer c.cancel()
	if !c.writing.TryLock() {
		return nil
	}
	defer c.writing.Unlock()
	if err := c.stream.CloseSend(); err != nil {
		return nil // the stream has ended (grpc-go returns that error from Recv only)
	}
	defer time.AfterFunc(pipeGoodbye, c.cancel).Stop()
	c.reading.Lock()
	defer c.reading.Unlock()
	for {
		if _, err := c.stream.Recv(); err != nil {
			return nil
		}
	}
}

func (c *pipeConn) LocalAddr() net.Addr  { return pipeAddr("swdt") }
func (c *pipeConn) RemoteAddr() net.Addr { return pipeAddr(c.path) }

func (c *pipeConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *pipeConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *pipeConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

type pipeAddr string

func (a pipeAddr) Network() string { return "pipe" }
func (a pipeAddr) String() string  { return string(a) }
