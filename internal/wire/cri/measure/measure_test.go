package measure_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/swdt-dev/swdt/internal/platform/imitation/criserver"
	"github.com/swdt-dev/swdt/internal/wire/cri"
	"github.com/swdt-dev/swdt/internal/wire/cri/measure"
)

func TestMedianOfCalls(t *testing.T) {
	server := criserver.NewServer(criserver.Options{Version: "v1.7.12"})
	listener := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return listener.DialContext(ctx)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, method := range []string{cri.MethodVersion, measure.MethodStats} {
		switch took, err := measure.Median(t.Context(), conn, method, 3); {
		case err != nil:
			t.Errorf("%s: %v", method, err)
		case took <= 0:
			t.Errorf("%s: took is %v, want more than 0", method, took)
		}
	}
	if _, err := measure.Median(t.Context(), conn, "/runtime.v1.RuntimeService/None", 3); err == nil {
		t.Error("a call that failed has a median")
	}
}

func TestBulkInBothDirections(t *testing.T) {
	for _, direction := range []measure.Direction{measure.FromServer, measure.ToServer} {
		near, far := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			measure.ServeBulk(far)
		}()
		if rate, err := measure.Bulk(near, direction, 2); err != nil || rate <= 0 {
			t.Errorf("%c: %g, %v", direction, rate, err)
		}
		near.Close()
		<-served
		if _, err := measure.Bulk(near, direction, 1); err == nil {
			t.Errorf("%c: bytes pass a connection that is closed", direction)
		}
	}
}
