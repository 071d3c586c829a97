package simulated

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// serveCRI answers runtime.v1.RuntimeService/Version on containerd's pipe. The
// message is written by hand: the CRI's Go module would be the largest
// dependency of the program for four strings.
func (c component) serveCRI() (func(), error) {
	listener, err := c.p.ListenPipe(ContainerdPipe)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(
		grpc.ForceServerCodec(rawCodec{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { return c.answer(stream) }),
	)
	m := c.p.p.m
	m.spawn(func() { _ = server.Serve(listener) })
	m.spawn(func() {
		<-c.p.Context().Done()
		server.Stop()
	})
	return func() {
		_ = listener.Close()
		server.Stop()
	}, nil
}

func (c component) answer(stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	switch {
	case c.fault == Unhealthy:
		return status.Error(codes.Unavailable, "server is not initialized yet")
	case method != "/runtime.v1.RuntimeService/Version":
		return status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	var reply []byte
	for i, text := range []string{"0.1.0", "containerd", c.version, "v1"} {
		reply = protowire.AppendTag(reply, protowire.Number(i+1), protowire.BytesType)
		reply = protowire.AppendString(reply, text)
	}
	return stream.SendMsg(&reply)
}

// rawCodec passes messages as bytes.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("marshal %T: not bytes", v)
	}
	return *b, nil
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("unmarshal %T: not bytes", v)
	}
	*b = append([]byte(nil), data...)
	return nil
}
