package nodetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/swdt-dev/swdt/internal/wire/packed"
)

// Tamper changes the replies of a node's agent, as an attacker who has taken over the node could. It
// gets each reply of a call; number counts the replies of that call from 0. It may call send any
// number of times, with that reply or with other messages. If it returns io.EOF, the call ends
// without an error; if it returns any other error, the call ends with that error.
type Tamper func(method string, number int, reply proto.Message, send func(proto.Message) error) error

// Tamper reconnects, and passes all replies through f from then on. If f is nil, replies stay
// unchanged.
func (n *Node) Tamper(f Tamper) {
	n.t.Helper()
	n.mutex.Lock()
	n.tamper = f
	n.mutex.Unlock()
	if err := n.Reconnect(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
}

// tampered returns a connection to the agent through a relay, which passes all replies through f.
func (n *Node) tampered(agent net.Conn, f Tamper) (net.Conn, error) {
	near, stop, err := Between(agent, f)
	if err == nil {
		n.t.Cleanup(stop)
	}
	return near, err
}

// Between returns a connection to an agent through a relay, which passes all replies through f. stop
// closes both sides of the relay.
func Between(agent net.Conn, f Tamper) (near net.Conn, stop func(), err error) {
	back, err := grpc.NewClient("passthrough:///agent", append(inMemory(agent),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(frames{encoding.GetCodecV2("proto")}),
			grpc.MaxCallRecvMsgSize(16<<20)),
		grpc.WithChainStreamInterceptor(packed.Client))...)
	if err != nil {
		return nil, nil, err
	}
	near, far := net.Pipe()
	server := grpc.NewServer(grpc.ForceServerCodecV2(frames{encoding.GetCodecV2("proto")}), grpc.MaxRecvMsgSize(16<<20),
		grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error { return relay(s, back, f) }))
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(&oneConn{conn: far, closed: make(chan struct{})})
	}()
	return near, func() {
		far.Close() // if near was never used, the server would wait for its first bytes forever
		server.Stop()
		back.Close()
		<-served
	}, nil
}

// relay forwards one call to the agent, and its replies through f to the caller.
func relay(s grpc.ServerStream, agent *grpc.ClientConn, f Tamper) error {
	method, _ := grpc.MethodFromServerStream(s)
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return err
	}
	output := found.(protoreflect.MethodDescriptor).Output().FullName()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(output)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	if headers, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, headers)
	}
	to, err := agent.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go requests(s, to, cancel)
	for number := 0; ; number++ {
		reply := kind.New().Interface()
		err := to.RecvMsg(reply)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch err := f(method, number, reply, func(m proto.Message) error { return s.SendMsg(m) }); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// requests forwards the caller's messages to the agent unchanged.
func requests(s grpc.ServerStream, to grpc.ClientStream, cancel context.CancelFunc) {
	for {
		var request frame
		err := s.RecvMsg(&request)
		if errors.Is(err, io.EOF) {
			err = to.CloseSend()
			if err == nil {
				return
			}
		}
		if err == nil {
			err = to.SendMsg(&request)
		}
		if err != nil {
			cancel()
			return
		}
	}
}

// frame is an encoded message.
type frame []byte

// frames is a codec for frames and messages.
type frames struct{ encoding.CodecV2 }

func (c frames) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*frame); ok {
		return mem.BufferSlice{mem.SliceBuffer(*f)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (c frames) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*frame); ok {
		*f = data.Materialize()
		return nil
	}
	if _, ok := v.(proto.Message); !ok {
		return fmt.Errorf("decode a %T", v)
	}
	return c.CodecV2.Unmarshal(data, v)
}

// oneConn is a listener that accepts one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "node", Net: "unix"} }
