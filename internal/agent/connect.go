package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

type connectStream = grpc.BidiStreamingServer[agentv1.ConnectRequest, agentv1.ConnectReply]

// Connect relays a connection to a TCP port of this machine. Each direction ends by itself: the
// caller's end closes the connection for writing, and the peer's end is sent as a reply.
func (s *networkService) Connect(stream connectStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	address, err := netip.ParseAddrPort(first.GetAddress())
	if err != nil || address.Addr().Zone() != "" || address.Port() == 0 {
		return fmt.Errorf("connect to %q: it is not an address and a port: %w", first.GetAddress(), fault.ErrPermission)
	}
	conn, err := s.platform.Network.Connect(stream.Context(), address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := stream.Send(&agentv1.ConnectReply{}); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		err := toPeer(conn, stream)
		if err != nil {
			conn.Close() // ends fromPeer, also if the caller has disconnected or the session has ended
		}
		sent <- err
	}()
	if err := fromPeer(stream, conn); err != nil {
		return err
	}
	return <-sent
}

// toPeer copies the caller's bytes to the peer. At the end of the caller's direction it closes the
// connection for writing.
func toPeer(conn platform.Connection, stream connectStream) error {
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return conn.CloseWrite()
		}
		if err != nil {
			return err
		}
		if _, err := conn.Write(request.GetData()); err != nil {
			return fmt.Errorf("send to the peer: %w", err)
		}
	}
}

// fromPeer copies the peer's bytes to the caller, and reports the end of the peer's direction.
func fromPeer(stream connectStream, conn net.Conn) error {
	buffer := make([]byte, pipeChunk)
	for {
		n, err := conn.Read(buffer)
		if n > 0 {
			if err := stream.Send(&agentv1.ConnectReply{Data: buffer[:n]}); err != nil {
				return err // for example, the caller has disconnected
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return stream.Send(&agentv1.ConnectReply{End: true})
		default:
			return fmt.Errorf("read from the peer: %w", err)
		}
	}
}
