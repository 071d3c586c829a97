package capture

import (
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/pcapng"
)

// patience is how far one node may be ahead of another before its packets are
// written all the same: the other is slow, or its clock is.
const patience = 10 * time.Second

// Stream writes rounds of several nodes as one capture while they come, in order of
// time: a packet waits until no node can come with an older one, or for patience.
type Stream struct {
	mu     sync.Mutex
	merger *pcapng.Merger
	until  map[string]time.Time // of nodes that have not ended: they come with nothing older
	counts map[string]*Count
}

// NewStream writes what a reader needs at once: the interfaces of the nodes. Others
// follow as they come up.
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

// Add takes packets of a node and removes their files once they are written. Its
// later packets are younger than until; zero: that is not known.
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

// End says that nothing more comes of a node.
func (s *Stream) End(node string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.until, node)
	return s.write()
}

// Close lets go of packets that were not written, and removes their files.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.merger.Close()
}

// Count is of the packets of a node that were written.
func (s *Stream) Count(node string) Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Count{}.Plus(*s.counts[node])
}

// write writes what waits for nobody.
func (s *Stream) write() error {
	if len(s.until) == 0 {
		_, err := s.merger.WriteAll()
		return err
	}
	times := slices.SortedFunc(maps.Values(s.until), time.Time.Compare)
	limit := times[0]
	if hurry := times[len(times)-1].Add(-patience); hurry.After(limit) {
		limit = hurry
	}
	_, err := s.merger.WriteUntil(limit)
	return err
}
