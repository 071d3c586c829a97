package node

import (
	"sync"
	"time"
)

// Reading is what was measured of the way to a node.
type Reading struct {
	RoundTrip      time.Duration
	BytesPerSecond float64 // from here to there; 0: not known
	At             time.Time
}

// Speed remembers the latest reading, beyond the end of a connection: the way is
// most likely the same afterwards. The zero value knows nothing yet. It is safe
// for concurrent use.
type Speed struct {
	mu     sync.Mutex
	latest Reading
}

// Latest is the latest reading.
func (s *Speed) Latest() Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest
}

// Note takes a reading down.
func (s *Speed) Note(r Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = r
}
