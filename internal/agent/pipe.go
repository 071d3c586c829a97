package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/cri"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// pipeChunk is the maximum number of a pipe's bytes that are sent in one message.
const pipeChunk = 32<<10 - 64

// Pipe relays a container runtime's pipe. If one side reads slowly, only the other side of this
// relay must wait, since each relay is a stream with its own window.
func (s *networkService) Pipe(stream grpc.BidiStreamingServer[agentv1.PipeRequest, agentv1.PipeReply]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	path := first.GetPipe()
	if !cri.IsPipe(path) {
		return fmt.Errorf("connect to %s: %w: the agent relays only to %s", path, fault.ErrPermission,
			strings.Join(cri.Pipes(), " and "))
	}
	conn, err := s.platform.Network.DialPipe(stream.Context(), path)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := stream.Send(&agentv1.PipeReply{}); err != nil {
		return err
	}
	// Closing the pipe ends the read below, also if the client has disconnected
	// or the session has ended.
	go func() {
		defer conn.Close()
		fromClient(conn, stream)
	}()
	return toClient(stream, conn)
}

// fromClient copies the client's bytes to the pipe until the client or the pipe
// has closed.
func fromClient(conn net.Conn, stream grpc.BidiStreamingServer[agentv1.PipeRequest, agentv1.PipeReply]) {
	for {
		request, err := stream.Recv()
		if err != nil {
			return
		}
		if _, err := conn.Write(request.GetData()); err != nil {
			return
		}
	}
}

func toClient(stream grpc.BidiStreamingServer[agentv1.PipeRequest, agentv1.PipeReply], conn net.Conn) error {
	buffer := make([]byte, pipeChunk)
	for {
		n, err := conn.Read(buffer)
		if n > 0 {
			if err := stream.Send(&agentv1.PipeReply{Data: buffer[:n]}); err != nil {
				return err // for example, the client has disconnected
			}
		}
		switch {
		case err == nil:
		case err == io.EOF, errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
			return nil
		default:
			return fmt.Errorf("read from the pipe: %w", err)
		}
	}
}
