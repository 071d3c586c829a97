package criproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // for clients that compress their messages
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming"
	"github.com/swdt-dev/swdt/internal/wire/cri"
)

const (
	// largestMessage bounds a message, in bytes. The runtime and its clients have smaller limits of
	// their own.
	largestMessage = 64 << 20
	// largestHeader bounds the metadata and the status of a call, in bytes.
	largestHeader = 1 << 20
	// partingTime bounds the time for the last answers, when the proxy ends.
	partingTime = 5 * time.Second
	// reconnectTime bounds the time for one connection to the runtime, which may include a new
	// connection to the node.
	reconnectTime = 5 * time.Minute
)

// calls relays the gRPC calls of one client's connection.
type calls struct {
	ctx     context.Context
	dial    Dial
	streams *streaming.Relay
	runtime *grpc.ClientConn

	mu       sync.Mutex
	failed   error         // the error of the last dial; nil if it succeeded
	hopeless chan struct{} // closed when failed is a *HopelessError
}

// relayCalls serves the calls of a client's connection until the connection or ctx ends, or until the
// runtime can never be reached again; then it returns the *HopelessError. The connection to the
// runtime is made for the first call, and again for a call after it has broken. While the runtime
// cannot be reached, calls fail with the reason.
func relayCalls(ctx context.Context, local net.Conn, dial Dial, streams *streaming.Relay) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	c := &calls{ctx: ctx, dial: dial, streams: streams, hopeless: make(chan struct{})}
	if err := c.connect(); err != nil {
		return err
	}
	defer c.runtime.Close()
	server := grpc.NewServer(
		grpc.ForceServerCodec(cri.RawCodec{}), grpc.UnknownServiceHandler(c.relay),
		grpc.MaxRecvMsgSize(largestMessage), grpc.MaxSendMsgSize(largestMessage),
		grpc.MaxHeaderListSize(largestHeader), grpc.WaitForHandlers(true),
		// The client's pings end here. It may ping as often as it likes.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	listener := newSingle(local)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // Serve ends when the server is stopped
	}()
	select {
	case <-listener.ended:
	case <-ctx.Done():
	case <-c.hopeless:
		// GracefulStop delivers the pending answers; Stop ends the connection of a client that does
		// not read.
		limit := time.AfterFunc(partingTime, server.Stop)
		server.GracefulStop()
		limit.Stop()
	}
	done()
	server.Stop()
	<-served
	return c.lastDial()
}

// connect prepares the connection to the runtime.
func (c *calls) connect() (err error) {
	c.runtime, err = grpc.NewClient("passthrough:///runtime",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the connection to the node is protected
		grpc.WithContextDialer(c.reach),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(cri.RawCodec{}), grpc.MaxCallRecvMsgSize(largestMessage),
			grpc.MaxCallSendMsgSize(largestMessage)),
		grpc.WithMaxHeaderListSize(largestHeader),
		// Each call tries again, except within a moment after a failure. The Keeper rests, too.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: restTime / 4, Multiplier: 1, MaxDelay: restTime / 4},
			MinConnectTimeout: reconnectTime,
		}),
		grpc.WithIdleTimeout(0), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
	)
	return err
}

// reach dials the runtime, and keeps the error for the calls that wait. It removes the agent's gRPC
// status from the error, which grpc would otherwise use as the status of the call.
func (c *calls) reach(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := c.dial(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return conn, err
	}
	var before, now *HopelessError
	if errors.As(err, &now) && !errors.As(c.failed, &before) {
		close(c.hopeless)
	}
	c.failed = err
	if err != nil {
		return nil, errors.New(err.Error())
	}
	return conn, nil
}

func (c *calls) lastDial() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// relay relays one call.
func (c *calls) relay(_ any, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	ctx, cancel := context.WithCancel(in.Context())
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	if asked, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, asked.Copy())
	}
	out, err := c.runtime.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return c.explain(err)
	}
	go ask(out, in, cancel) // ends with this call, whose context ends the reading
	header, err := out.Header()
	if err == nil {
		err = in.SendHeader(header)
	}
	if err == nil {
		err = c.answer(in, out, method)
	}
	in.SetTrailer(out.Trailer())
	return c.explain(err)
}

// ask sends the client's messages to the runtime. If the client has cancelled the call, ask cancels
// it at the runtime.
func ask(out grpc.ClientStream, in grpc.ServerStream, cancel func()) {
	for {
		var message []byte
		switch err := in.RecvMsg(&message); {
		case err == io.EOF:
			_ = out.CloseSend() // grpc reports that error to the reader
			return
		case err != nil:
			cancel()
			return
		}
		if out.SendMsg(message) != nil {
			return // the reader gets the cause
		}
	}
}

// answer sends the runtime's messages to the client. It returns the runtime's status, nil for OK.
func (c *calls) answer(in grpc.ServerStream, out grpc.ClientStream, method string) error {
	for {
		var message []byte
		if err := out.RecvMsg(&message); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if answersURL(method) {
			replaced, err := replaceURL(message, c.streams.Replace)
			if err != nil {
				return err
			}
			message = replaced
		}
		if err := in.SendMsg(message); err != nil {
			return err
		}
	}
}

// explain returns the error of a call to the runtime. If the runtime cannot be reached, that is the
// error of the last dial.
func (c *calls) explain(err error) error {
	if status.Code(err) != codes.Unavailable {
		return err
	}
	if why := c.lastDial(); why != nil {
		return status.Error(codes.Unavailable, why.Error())
	}
	return err
}
