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
	"github.com/swdt-dev/swdt/internal/cri"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/redact"
)

type pipeStream = grpc.GenericServerStream[agentv1.PipeRequest, agentv1.PipeReply]

// redactedPipe is Pipe for a caller that wants no secrets. Bytes that are only
// relayed cannot be redacted; so the agent is the runtime itself to the caller,
// passes on the questions that change nothing, and takes the secrets out of the
// answers.
func (s *networkService) redactedPipe(stream *pipeStream, r *redact.Redactor) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	path := first.GetPipe()
	if !cri.IsPipe(path) {
		return fmt.Errorf("connect to %s: %w: the agent relays only to %s", path, host.ErrPermission, strings.Join(cri.Pipes(), " and "))
	}
	probe, err := s.host.Network.DialPipe(stream.Context(), path) // whether somebody is there
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

// redactedCall passes one question on.
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
		return status.Error(codes.Internal, "the runtime's answer cannot be redacted: it is no protobuf message")
	}
	return call.SendMsg(clean)
}

// pipeBytes are the bytes of a relayed pipe.
type pipeBytes struct {
	stream *pipeStream
	unread []byte
}

func (p *pipeBytes) Read(data []byte) (int, error) {
	for len(p.unread) == 0 {
		request, err := p.stream.Recv()
		if err != nil {
			return 0, io.EOF // the caller has gone
		}
		p.unread = request.GetData()
	}
	n := copy(data, p.unread)
	p.unread = p.unread[n:]
	return n, nil
}

func (p *pipeBytes) Write(data []byte) (int, error) {
	// A copy: the message may be sent after this returns.
	if err := p.stream.Send(&agentv1.PipeReply{Data: append([]byte(nil), data...)}); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Close is nothing: the stream ends with its call.
func (p *pipeBytes) Close() error { return nil }
