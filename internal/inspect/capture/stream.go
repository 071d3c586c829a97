package capture

import (
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/format/pcapng"
)

// maxLag bounds how long packets wait for a slow node, or for a node whose clock is slow: packets
// that are more than maxLag older than the latest Until of all nodes are written without waiting.
const maxLag = 10 * time.Second

// Stream writes the rounds of several nodes as one capture while they arrive. It writes the packets
// in order of time: a packet waits until no node can send an older packet, or until some node is
// ahead of the packet by more than maxLag.
type Stream struct {
	mu     sync.Mutex
	merger *pcapng.Merger
	// until maps each node that has not ended to a time. The node's next packets were captured
	// after this time.
	until  map[string]time.Time
	counts map[string]*Count
}

// NewStream returns a Stream that has written the beginning of the capture: the interfaces
// of the nodes, which readers need first. Further interfaces follow when they appear.
func NewStream(to io.Writer, nodes ...string) (*Stream, error) {
	w, err := pcapng.NewWriter(to, application)
	if err != nil {
		return nil, err
	}
	s := &Stream{merger: pcapng.NewMerger(w), until: map[string]time.Time{}, counts: map[string]*Count{}}
	for _, node := range nodes {
		s.until[node], s.counts[node] = time.Time{}, newCount()
		if _, err := s.merger.Interface(pcapng.Interface{Name: node, LinkType: pcapng.Ethernet}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Add adds packets of a node, and removes the packets' files after the packets were written. The
// node's later packets were captured after the given time; zero means that no such time is known.
func (s *Stream) Add(part Part, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sources, err := part.sources(s.counts[part.Node], os.Remove)
	if err != nil {
		return err
	}
	for i, source := range sources {
		if err := s.merger.Add(source); err != nil {
			closeAll(sources[i+1:])
			return err
		}
	}
	if until.After(s.until[part.Node]) {
		s.until[part.Node] = until
	}
	return s.write()
}

// End records that the node sends no more packets, so that packets of other nodes need not wait for
// packets of this node.
func (s *Stream) End(node string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.until, node)
	return s.write()
}

// Close drops the packets that were not written, and removes the files of these packets.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.merger.Close()
}

// Count returns the number of packets of a node that were written.
func (s *Stream) Count(node string) Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Count{}.Plus(*s.counts[node])
}

// write writes the packets that need not wait.
func (s *Stream) write() error {
	if len(s.until) == 0 {
		_, err := s.merger.WriteAll()
		return err
	}
	times := slices.SortedFunc(maps.Values(s.until), time.Time.Compare)
	limit := times[0]
	if hurry := times[len(times)-1].Add(-maxLag); hurry.After(limit) {
		limit = hurry
	}
	_, err := s.merger.WriteUntil(limit)
	return err
}
