package reply

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"
)

// No call of the contract reaches its caller past the rules, whichever kind of call it is: a node answers each of them
// with a field that the contract does not have.
func TestEveryCallIsHeldAgainstTheRules(t *testing.T) {
	connection := hostile(t)
	calls := methods()
	if len(calls) < 30 {
		t.Fatalf("the contract has only %d calls", len(calls))
	}
	for _, method := range calls {
		service := string(method.Parent().FullName())
		name := service[strings.LastIndex(service, ".")+1:] + "/" + string(method.Name())
		t.Run(name, func(t *testing.T) {
			request, answer := newMessage(t, method.Input().FullName()), newMessage(t, method.Output().FullName())
			path := "/" + service + "/" + string(method.Name())
			var err error
			if method.IsStreamingClient() || method.IsStreamingServer() {
				var s grpc.ClientStream
				s, err = connection.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, path)
				if err == nil {
					err = s.SendMsg(request)
				}
				if err == nil {
					err = s.RecvMsg(answer)
				}
			} else {
				err = connection.Invoke(t.Context(), path, request, answer)
			}
			refused, ok := errors.AsType[*Error](err)
			if !ok || refused.Method != name || refused.Field != string(method.Output().Name())+".31" {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// hostile returns a connection to a server that answers each call with the field 31.
func hostile(t *testing.T) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		if err := s.RecvMsg(&emptypb.Empty{}); err != nil {
			return err
		}
		answer := &emptypb.Empty{}
		answer.ProtoReflect().SetUnknown([]byte("\xfa\x01\x02hi"))
		return s.SendMsg(answer)
	}))
	go func() { _ = server.Serve(listener) }() // until Stop
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient("passthrough:///node", append(Options(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}
