package simulated

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// serveCRI answers runtime.v1.RuntimeService/Version and Status on containerd's
// pipe. The messages are written by hand: the CRI's Go module would be the
// largest dependency of the program for a few strings.
func (c component) serveCRI() (func(), error) {
	settings, err := c.loadContainerdConfig()
	if err != nil {
		return nil, err
	}
	listener, err := c.p.ListenPipe(settings.pipe)
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(
		grpc.ForceServerCodec(rawCodec{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { return c.answer(stream, settings) }),
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

func (c component) answer(stream grpc.ServerStream, settings containerdSettings) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	switch {
	case c.fault == Unhealthy:
		return status.Error(codes.Unavailable, "server is not initialized yet")
	case method == "/runtime.v1.RuntimeService/Status":
		reply := c.runtimeStatus(settings)
		return stream.SendMsg(&reply)
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

// runtimeStatus says that there is no pod network as containerd does.
func (c component) runtimeStatus(settings containerdSettings) []byte {
	network := runtimeCondition{kind: "NetworkReady", ready: true}
	if !c.p.p.m.networkReady(settings.confDir) {
		network = runtimeCondition{"NetworkReady", false, "NetworkPluginNotReady", "Network plugin returns error: cni plugin not initialized"}
	}
	return encodeStatus(runtimeCondition{kind: "RuntimeReady", ready: true}, network)
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
