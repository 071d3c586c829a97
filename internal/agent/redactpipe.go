package agent

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/wire/cri"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

type pipeStream = grpc.GenericServerStream[agentv1.PipeRequest, agentv1.PipeReply]

// redactedPipe is Pipe for a caller that requests redaction. Bytes that are
// only relayed cannot be redacted, so the agent acts as the runtime towards the
// caller, forwards the calls that change nothing, and redacts the replies.
func (s *networkService) redactedPipe(stream *pipeStream, r *redact.Redactor) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	path := first.GetPipe()
	if !cri.IsPipe(path) {
		return fmt.Errorf("connect to %s: %w: the agent relays only to %s", path, fault.ErrPermission,
			strings.Join(cri.Pipes(), " and "))
	}
	probe, err := s.platform.Network.DialPipe(stream.Context(), path) // fails if no process serves the pipe
	if err != nil {
		return err
	}
	probe.Close()
	if err := stream.Send(&agentv1.PipeReply{}); err != nil {
		return err
	}
	ask := func(_ any, call grpc.ServerStream) error {
		return s.redactedCall(call, path, r)
	}
	conn, bridge := newBridge(&pipeBytes{stream: stream})
	defer bridge.close(stream.Context())
	defer conn.Close()
	server := grpc.NewServer(grpc.ForceServerCodec(cri.RawCodec{}), grpc.UnknownServiceHandler(ask))
	listener := newListener(conn)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case <-listener.ended:
	case <-stream.Context().Done():
	}
	server.Stop()
	if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// redactedCall forwards one call to the runtime and redacts the reply.
func (s *networkService) redactedCall(call grpc.ServerStream, path string, r *redact.Redactor) error {
	method, _ := grpc.MethodFromServerStream(call)
	var question []byte
	if err := call.RecvMsg(&question); err != nil {
		return err
	}
	answer, err := cri.Ask(call.Context(), s.pipe(path), method, question)
	if err != nil {
		return status.Error(codes.Unknown, r.String(err.Error()))
	}
	clean := r.Message(answer)
	if clean == nil && len(answer) > 0 {
		return status.Error(codes.Internal, "the runtime's reply cannot be redacted: it is not a protobuf message")
	}
	return call.SendMsg(clean)
}

// pipeBytes is the stream of a Pipe call as an io.ReadWriteCloser: Read returns the bytes that the
// caller sends, and Write sends bytes to the caller.
type pipeBytes struct {
	stream *pipeStream
	unread []byte
}

func (p *pipeBytes) Read(data []byte) (int, error) {
	for len(p.unread) == 0 {
		request, err := p.stream.Recv()
		if err != nil {
			return 0, io.EOF // the caller has disconnected
		}
		p.unread = request.GetData()
	}
	n := copy(data, p.unread)
	p.unread = p.unread[n:]
	return n, nil
}

func (p *pipeBytes) Write(data []byte) (int, error) {
	// Send a copy of the data, since gRPC may read the message after Write has
	// returned.
	if err := p.stream.Send(&agentv1.PipeReply{Data: append([]byte(nil), data...)}); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Close does nothing: the stream ends with its call.
func (p *pipeBytes) Close() error { return nil }
