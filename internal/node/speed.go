package node

import (
	"sync"
	"time"
)

// Reading is a measurement of the link to a node.
type Reading struct {
	RoundTrip      time.Duration
	BytesPerSecond float64 // the speed from your machine to the node; 0: not known
	At             time.Time
}

// Speed stores the latest reading. It keeps the reading after the connection has ended,
// since the next connection most likely uses the same link. The zero value has no
// reading. It is safe for concurrent use.
type Speed struct {
	mu     sync.Mutex
	latest Reading
}

// Latest returns the latest reading.
func (s *Speed) Latest() Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest
}

// Note stores a reading.
func (s *Speed) Note(r Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = r
}
