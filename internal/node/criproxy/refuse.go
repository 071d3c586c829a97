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

// refuseTime bounds the time for a client's first request and its answer.
const refuseTime = 5 * time.Second

// refuse answers a gRPC client's first calls with the reason why the runtime cannot be
// reached, instead of just closing the connection. Then it hangs up, so that the
// client's next calls try again.
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
		_ = server.Serve(listener) // Serve ends when refuse stops the server
	}()
	<-ctx.Done()
	// GracefulStop delivers the pending answers; Stop ends the connection of a client that does not read.
	limit := time.AfterFunc(refuseTime, server.Stop)
	defer limit.Stop()
	server.GracefulStop()
	<-served
}

// single is a listener with one connection.
type single struct {
	conn   net.Conn
	ctx    context.Context
	hangUp func()
	once   sync.Once
}

func (s *single) Accept() (conn net.Conn, err error) {
	s.once.Do(func() { conn = &noticed{Conn: s.conn, hangUp: s.hangUp} })
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

// noticed is a connection that reports its end.
type noticed struct {
	net.Conn
	hangUp func()
}

func (t *noticed) Close() error {
	defer t.hangUp()
	return t.Conn.Close()
}
