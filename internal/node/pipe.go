package node

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// pipeGoodbye is how long Close waits for the last written bytes to arrive.
const pipeGoodbye = 2 * time.Second

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
	stream, cancel, err := openRelay(ctx, "pipe "+path, client.Pipe, &agentv1.PipeRequest{Pipe: path})
	if err != nil {
		return nil, err
	}
	c := &pipeConn{stream: stream, path: path}
	c.relay.cancel = cancel
	c.relay.send = func(data []byte) error { return stream.Send(&agentv1.PipeRequest{Data: data}) }
	c.relay.receive = func() ([]byte, error) {
		reply, err := stream.Recv()
		return reply.GetData(), err
	}
	return c, nil
}

// pipeConn is this machine's end of a relayed pipe.
type pipeConn struct {
	relay
	stream grpc.BidiStreamingClient[agentv1.PipeRequest, agentv1.PipeReply]
	path   string
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

// RemoteAddr implements net.Conn.
func (c *pipeConn) RemoteAddr() net.Addr { return pipeAddr(c.path) }

type pipeAddr string

func (a pipeAddr) Network() string { return "pipe" }
func (a pipeAddr) String() string  { return string(a) }
