package criproxy

import (
	"net"
	"sync"
)

// single is a listener with one connection. ended is closed when that connection or the listener is
// closed.
type single struct {
	conn  net.Conn
	ended chan struct{}

	accept, end sync.Once
}

func newSingle(conn net.Conn) *single { return &single{conn: conn, ended: make(chan struct{})} }

func (s *single) Accept() (conn net.Conn, err error) {
	s.accept.Do(func() { conn = &noticed{Conn: s.conn, hangUp: s.hangUp} })
	if conn != nil {
		return conn, nil
	}
	<-s.ended
	return nil, net.ErrClosed
}

func (s *single) Close() error {
	s.hangUp()
	return nil
}

func (s *single) Addr() net.Addr { return s.conn.LocalAddr() }

func (s *single) hangUp() { s.end.Do(func() { close(s.ended) }) }

// noticed is a connection that reports its end.
type noticed struct {
	net.Conn
	hangUp func()
}

func (t *noticed) Close() error {
	defer t.hangUp()
	return t.Conn.Close()
}
