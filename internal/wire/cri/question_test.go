package cri_test

import (
	"bytes"
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"

	"github.com/swdt-dev/swdt/internal/wire/cri"
)

// A reply may be larger than the initial window of HTTP/2.
func TestAskForALargeAnswer(t *testing.T) {
	want := bytes.Repeat([]byte("container "), 200_000)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(cri.RawCodec{}), grpc.UnknownServiceHandler(
		func(_ any, stream grpc.ServerStream) error {
			var request []byte
			if err := stream.RecvMsg(&request); err != nil {
				return err
			}
			return stream.SendMsg(want)
		}))
	go server.Serve(listener)
	defer server.Stop()
	dialled := 0
	dial := func(ctx context.Context) (net.Conn, error) {
		dialled++
		return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	}
	got, err := cri.Ask(t.Context(), dial, "/runtime.v1.RuntimeService/ListContainers", nil)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if _, err := cri.Ask(t.Context(), dial, "/runtime.v1.RuntimeService/RemoveContainer", nil); err == nil ||
		dialled != 1 {
		t.Errorf("a container would have been removed: %v", err)
	}
}
