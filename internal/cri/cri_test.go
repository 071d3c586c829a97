package cri_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"

	"github.com/swdt-dev/swdt/internal/cri"
)

func TestVersionOverAConnection(t *testing.T) {
	want := cri.VersionInfo{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: "v1.7.12", RuntimeAPIVersion: "v1"}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(cri.RawCodec{}), grpc.UnknownServiceHandler(
		func(_ any, stream grpc.ServerStream) error {
			if method, _ := grpc.MethodFromServerStream(stream); method != cri.MethodVersion {
				t.Errorf("called %s", method)
			}
			var request []byte
			if err := stream.RecvMsg(&request); err != nil {
				return err
			}
			reply := append(cri.EncodeVersion(want), 0x2a, 1, 'x') // and a field from the future
			return stream.SendMsg(reply)
		}))
	go server.Serve(listener)
	defer server.Stop()

	got, err := cri.Version(context.Background(), func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	})
	if err != nil || got != want {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestVersionWithoutARuntime(t *testing.T) {
	_, err := cri.Version(context.Background(), func(context.Context) (net.Conn, error) {
		return nil, context.DeadlineExceeded
	})
	if err == nil {
		t.Fatal("a runtime that cannot be reached answered")
	}
}
