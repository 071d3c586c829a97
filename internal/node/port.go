package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

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
	stream, cancel, err := openRelay(ctx, fmt.Sprintf("%s on the node", address), client.Connect,
		&agentv1.ConnectRequest{Address: address.String()})
	if err != nil {
		return nil, err
	}
	c := &PortConn{stream: stream, address: net.TCPAddrFromAddrPort(address)}
	c.relay.cancel = cancel
	c.relay.send = func(data []byte) error { return stream.Send(&agentv1.ConnectRequest{Data: data}) }
	c.relay.receive = c.receive
	return c, nil
}

// PortConn is this machine's end of a connection to a TCP port of the node. Its directions end
// separately: Read returns io.EOF after the peer has closed its direction. Deadlines are not supported.
type PortConn struct {
	relay
	stream  grpc.BidiStreamingClient[agentv1.ConnectRequest, agentv1.ConnectReply]
	address net.Addr
}

// errEmpty is the error of a reply without data. No agent sends it, and an endless series of them would
// keep a reader busy for ever.
var errEmpty = errors.New("the node's answer to Network/Connect is empty")

// receive receives one reply. The regular end of the call is io.EOF only after the reply that
// announces the end of the data: without that reply, data may be missing.
func (c *PortConn) receive() ([]byte, error) {
	reply, err := c.stream.Recv()
	switch {
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	case err != nil:
	case reply.GetEnd():
		err = io.EOF
	case len(reply.GetData()) == 0:
		err = errEmpty
	}
	return reply.GetData(), err
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

// RemoteAddr implements net.Conn.
func (c *PortConn) RemoteAddr() net.Addr { return c.address }
