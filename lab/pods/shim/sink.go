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

// sink sends a process's output to containerd, which serves a pipe for the output, and serves
// the same pipe again after a restart. While no server runs, the process waits. After dialLimit
// the output is lost, without an error for the process.
type sink struct {
	path string
	ctx  context.Context
	lost func() // is called when the server ends; nil: nothing is

	mu   sync.Mutex
	conn net.Conn
}

func openSink(ctx context.Context, path string, lost func()) *sink {
	s := &sink{path: path, ctx: ctx, lost: lost}
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

// connect tries to connect for at most dialLimit, and reports whether it has connected.
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

// watch connects again when the server of conn has ended. Without watch, a process that writes
// nothing would never notice that, and the next server reads the pipe only after a client has
// connected.
func (s *sink) watch(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 1)) // the server sends nothing, so Read returns when the server ends
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != conn || s.ctx.Err() != nil {
		return
	}
	s.disconnect()
	if s.lost != nil {
		s.lost()
		return
	}
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
