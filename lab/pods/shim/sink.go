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
	// dialLimit is how long containerd may take to serve a stream's pipe.
	dialLimit = 30 * time.Second
	// dialInterval is the time between two attempts to connect.
	dialInterval = 50 * time.Millisecond
)

// sink carries a process's output to containerd, which serves a pipe for it, and the
// same pipe again after its restart. While no server runs the process waits; if none
// runs for long its output is lost, without an error for the process.
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

// connect retries until there is a server.
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

// watch notices that the server has ended, which a process without output would never
// notice: the next server reads the pipe only once it has a client.
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
