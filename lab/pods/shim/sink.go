//go:build windows

package main

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/lab/pods/pipe"
)

const (
	// dialLimit is how long containerd is given to serve a stream's pipe.
	dialLimit = 30 * time.Second
	// dialInterval is between two looks whether it does.
	dialInterval = 50 * time.Millisecond
)

// sink is a process's output on its way to containerd, which serves a pipe for it,
// and the same one again after its restart. A process is held up while nobody
// serves, and what it says is lost when nobody does for long; it gets no error.
type sink struct {
	path string
	ctx  context.Context

	mu   sync.Mutex
	conn net.Conn
}

func openSink(ctx context.Context, path string) *sink {
	s := &sink{path: path, ctx: ctx}
	if path != "" {
		s.mu.Lock()
		s.connect()
		s.mu.Unlock()
	}
	return s
}

func (s *sink) Write(text []byte) (int, error) {
	if s.path == "" {
		return len(text), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for rest := text; len(rest) > 0; {
		if s.conn == nil && !s.connect() {
			break
		}
		n, err := s.conn.Write(rest)
		rest = rest[n:]
		if err != nil {
			s.disconnect()
		}
	}
	return len(text), nil
}

// connect tries until there is a server.
func (s *sink) connect() bool {
	ctx, cancel := context.WithTimeout(s.ctx, dialLimit)
	defer cancel()
	tick := time.NewTicker(dialInterval)
	defer tick.Stop()
	for {
		conn, err := pipe.Dial(ctx, s.path)
		if err == nil {
			s.conn = conn
			go s.watch(conn)
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// watch notices a server that has gone, of which a process that says nothing would
// never learn: the next one reads the pipe only once it has a client.
func (s *sink) watch(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 1)) // nothing is ever sent here
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != conn || s.ctx.Err() != nil {
		return
	}
	s.disconnect()
	s.connect()
}

func (s *sink) disconnect() {
	_ = s.conn.Close()
	s.conn = nil
}

func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.disconnect()
	}
}
