package criproxy

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refuseTime is how long a client may take to ask and to hear why not.
const refuseTime = 5 * time.Second

// refuse answers a gRPC client's first calls with the reason why the runtime
// cannot be reached, instead of a connection that ends without a word, and hangs
// up, so that its next calls try again.
func refuse(ctx context.Context, local net.Conn, reason error) {
	ctx, done := context.WithTimeout(ctx, refuseTime)
	defer done()
	listener := &single{conn: local, ctx: ctx, hangUp: done}
	server := grpc.NewServer(
		grpc.ConnectionTimeout(refuseTime),
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
			defer done()
			return status.Error(codes.Unavailable, reason.Error())
		}),
	)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // its end is ours
	}()
	<-ctx.Done()
	// What was answered gets through; a client that reads nothing is cut off.
	limit := time.AfterFunc(refuseTime, server.Stop)
	defer limit.Stop()
	server.GracefulStop()
	<-served
}

// single is a listener of one connection.
type single struct {
	conn   net.Conn
	ctx    context.Context
	hangUp func()
	once   sync.Once
}

func (s *single) Accept() (conn net.Conn, err error) {
	s.once.Do(func() { conn = &told{Conn: s.conn, hangUp: s.hangUp} })
	if conn != nil {
		return conn, nil
	}
	<-s.ctx.Done()
	return nil, net.ErrClosed
}

func (s *single) Close() error {
	s.hangUp()
	return nil
}

func (s *single) Addr() net.Addr { return s.conn.LocalAddr() }

// told notices that the client has gone.
type told struct {
	net.Conn
	hangUp func()
}

func (t *told) Close() error {
	defer t.hangUp()
	return t.Conn.Close()
}
