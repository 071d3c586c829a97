package cri_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"

	"github.com/swdt-dev/swdt/internal/wire/cri"
)

func TestVersionOverAConnection(t *testing.T) {
	want := cri.VersionInfo{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: "v1.7.12",
		RuntimeAPIVersion: "v1"}
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
			reply := append(cri.EncodeVersion(want), 0x2a, 1, 'x') // and an unknown field
			return stream.SendMsg(reply)
		}))
	go server.Serve(listener)
	defer server.Stop()

	got, err := cri.Version(context.Background(), func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	})
	switch {
	case err != nil:
		t.Fatal(err)
	case got != want:
		t.Fatalf("got is %v, want %v", got, want)
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

func TestStatusIsWhatCame(t *testing.T) {
	want := []byte("a status, as it is")
	asked := make(chan []byte, 1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(cri.RawCodec{}), grpc.UnknownServiceHandler(
		func(_ any, stream grpc.ServerStream) error {
			if method, _ := grpc.MethodFromServerStream(stream); method != cri.MethodStatus {
				t.Errorf("called %s", method)
			}
			var request []byte
			if err := stream.RecvMsg(&request); err != nil {
				return err
			}
			asked <- request
			return stream.SendMsg(want)
		}))
	go server.Serve(listener)
	defer server.Stop()
	dial := func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	}
	for verbose, request := range map[bool]string{false: "", true: "\x08\x01"} { // StatusRequest{verbose}
		got, err := cri.Status(t.Context(), dial, verbose)
		if err != nil {
			t.Fatal(err)
		}
		if sent := <-asked; string(got) != string(want) || string(sent) != request {
			t.Errorf("asked %q, got %q", sent, got)
		}
	}
}
