package nodetest

import (
	"io"
	"net"
	"sync"
	"time"
)

// Link has the properties of a slow connection to a node. The zero value is as fast as memory.
type Link struct {
	BytesPerSecond float64       // from swdt to the node; 0: no limit
	Delay          time.Duration // from swdt to the node
	// CutAfter breaks the connection after this number of sent bytes; 0: never.
	CutAfter int64
}

// shape returns conn with delayed writes.
func (l Link) shape(conn net.Conn) net.Conn {
	if l == (Link{}) {
		return conn
	}
	s := &shaped{Conn: conn, link: l, queue: make(chan packet, 4), closed: make(chan struct{})}
	go s.deliver()
	return s
}

// shaped is a connection whose writes arrive later. It queues a few writes, as a socket's buffer
// does; when the queue is full, a write waits.
type shaped struct {
	net.Conn
	link  Link
	queue chan packet

	once   sync.Once
	closed chan struct{}

	mu   sync.Mutex
	sent int64
	free time.Time // the time at which the line will have sent all writes so far
}

type packet struct {
	data []byte
	due  time.Time
}

func (s *shaped) Write(p []byte) (int, error) {
	const most = 16 << 10
	written := 0
	for len(p) > 0 {
		n := min(len(p), most)
		if !s.line(p[:n]) {
			return written, io.ErrClosedPipe
		}
		written, p = written+n, p[n:]
	}
	return written, nil
}

// line computes when the bytes arrive and queues them for delivery. It reports whether the
// connection is still open; CutAfter closes it.
func (s *shaped) line(p []byte) bool {
	s.mu.Lock()
	s.sent += int64(len(p))
	cut := s.link.CutAfter > 0 && s.sent > s.link.CutAfter
	now := time.Now()
	if s.free.Before(now) {
		s.free = now
	}
	if s.link.BytesPerSecond > 0 {
		s.free = s.free.Add(time.Duration(float64(len(p)) / s.link.BytesPerSecond * float64(time.Second)))
	}
	due := s.free.Add(s.link.Delay)
	s.mu.Unlock()
	if cut {
		s.Close()
		return false
	}
	data := append([]byte(nil), p...)
	select {
	case s.queue <- packet{data, due}:
		return true
	case <-s.closed:
		return false
	}
}

func (s *shaped) deliver() {
	for {
		select {
		case <-s.closed:
			return
		case p := <-s.queue:
			timer := time.NewTimer(time.Until(p.due))
			select {
			case <-timer.C:
			case <-s.closed:
				timer.Stop()
				return
			}
			if _, err := s.Conn.Write(p.data); err != nil {
				s.Close()
				return
			}
		}
	}
}

func (s *shaped) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}
