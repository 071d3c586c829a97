package agent

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// drainTime limits how long the method close waits until the last bytes have been written to the
// stream.
const drainTime = time.Second

// A bridge turns a plain stream into a net.Conn. gRPC needs deadlines and a Close that ends a
// blocked Read or Write; a Windows process's stdin has neither. So gRPC gets one end of a
// net.Pipe, which has both, and two goroutines copy between the other end and the stream.
type bridge struct {
	stream  io.ReadWriteCloser
	far     net.Conn      // the end of the pipe that gRPC does not use
	written chan struct{} // closed when nothing more is written to `stream`
	once    sync.Once
}

func newBridge(stream io.ReadWriteCloser) (net.Conn, *bridge) {
	near, far := net.Pipe()
	b := &bridge{stream: stream, far: far, written: make(chan struct{})}
	go func() {
		defer far.Close() // gRPC reads EOF
		_, _ = io.CopyBuffer(far, onlyReader{stream}, make([]byte, bufferSize))
	}()
	go func() {
		defer close(b.written)
		defer far.Close() // later writes of gRPC fail
		_, _ = io.CopyBuffer(onlyWriter{stream}, far, make([]byte, bufferSize))
	}()
	return near, b
}

// close ends the stream. Before that, close waits for the bytes that gRPC wrote before it closed
// its end of the pipe. This wait ends after drainTime, or when ctx ends.
func (b *bridge) close(ctx context.Context) {
	b.once.Do(func() {
		timer := time.NewTimer(drainTime)
		defer timer.Stop()
		select {
		case <-b.written:
		case <-timer.C:
		case <-ctx.Done():
		}
		b.far.Close()
		b.stream.Close()
	})
}

// onlyReader and onlyWriter hide the other methods of the stream, so that io.CopyBuffer uses the
// buffer that it receives.
type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }

// listener gives gRPC the session's one connection. The channel `ended` is closed when gRPC
// closes that connection.
type listener struct {
	conn   chan net.Conn
	ended  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newListener(conn net.Conn) *listener {
	l := &listener{conn: make(chan net.Conn, 1), ended: make(chan struct{}), closed: make(chan struct{})}
	l.conn <- &notifyingConn{Conn: conn, ended: l.ended}
	return l
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conn:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return standardAddress{} }

type standardAddress struct{}

func (standardAddress) Network() string { return "stdio" }
func (standardAddress) String() string  { return "stdio" }

// notifyingConn reports when gRPC has closed the connection.
type notifyingConn struct {
	net.Conn
	ended chan struct{}
	once  sync.Once
}

func (c *notifyingConn) Close() error {
	defer c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}
