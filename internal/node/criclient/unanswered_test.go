package criclient_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/testing/memnet"
)

// A runtime that accepts each connection and ends it before it answers gets a few connections for a call, not one
// after the other for as long as the call may take: grpc repeats a call that was not sent, and connects again at once
// if the last connection began well (shouldRetry in stream.go and backoffIdx in clientconn.go of grpc-go 1.85).
// As soon as the runtime answers, so does the client.
func TestARuntimeThatEndsEachConnection(t *testing.T) {
	const calls, most, endless = 20, 3, 1000
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		server := grpc.NewServer()
		runtimev1.RegisterRuntimeServiceServer(server, versioned{})
		network := &memnet.Network{}
		accepting := network.Listen()
		go func() { _ = server.Serve(accepting) }()
		defer server.Stop()
		var dials atomic.Int64
		var answers atomic.Bool
		c, err := criclient.New(ctx, func(ctx context.Context) (net.Conn, error) {
			if answers.Load() {
				return network.DialContext(ctx, "tcp", accepting.Addr().String())
			}
			if dials.Add(1) > endless {
				cancel() // a client without a limit would go on
				return nil, context.Canceled
			}
			near, far := net.Pipe()
			go beginAndEnd(far)
			return near, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range calls {
			dials.Store(0)
			_, err := criclient.Version(ctx, c)
			if status.Code(err) != codes.Unavailable || dials.Load() > most ||
				!strings.Contains(err.Error(), "ended 3 connections before it answered") {
				t.Fatalf("after %d connections: %v", dials.Load(), err)
			}
			time.Sleep(time.Hour) // grpc tries to connect, less and less often
		}
		answers.Store(true)
		time.Sleep(time.Hour)
		if _, err := criclient.Version(ctx, c); err != nil {
			t.Errorf("the runtime answers again, but the client returns %v", err)
		}
	})
}

// beginAndEnd is a server of HTTP/2 that permits no call yet, and ends the connection once the client has its
// settings.
func beginAndEnd(conn net.Conn) {
	defer conn.Close()
	if _, err := io.CopyN(io.Discard, conn, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	begun := make(chan error, 1)
	framer := http2.NewFramer(conn, conn)
	go func() { begun <- framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams}) }()
	for {
		frame, err := framer.ReadFrame()
		if settings, is := frame.(*http2.SettingsFrame); err != nil || is && settings.IsAck() {
			break
		}
	}
	<-begun
}

// versioned is a runtime that has a version.
type versioned struct {
	runtimev1.UnimplementedRuntimeServiceServer
}

func (versioned) Version(context.Context, *runtimev1.VersionRequest) (*runtimev1.VersionResponse, error) {
	return &runtimev1.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: "2.1.0", RuntimeApiVersion: "v1"}, nil
}
