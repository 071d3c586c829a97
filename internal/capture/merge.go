package capture

import (
	"io"
	"maps"

	"github.com/swdt-dev/swdt/internal/pcapng"
)

// application is who writes captures.
const application = "swdt"

// Part is packets of one node, to be merged with others'.
type Part struct {
	Names
	Export Export
}

// Count is how many packets a file has.
type Count struct {
	Packets    int            `json:"packets"` // those that were dropped too
	Drops      int            `json:"drops"`
	Interfaces map[string]int `json:"interfaces"` // packets of each
}

func newCount() *Count { return &Count{Interfaces: map[string]int{}} }

// Plus adds them up.
func (c Count) Plus(other Count) Count {
	sum := Count{Packets: c.Packets + other.Packets, Drops: c.Drops + other.Drops, Interfaces: maps.Clone(c.Interfaces)}
	if sum.Interfaces == nil {
		sum.Interfaces = map[string]int{}
	}
	for name, packets := range other.Interfaces {
		sum.Interfaces[name] += packets
	}
	return sum
}

// Merge writes the captures of nodes as one. An interface in it is
// NODE/NAMESPACE/POD for a pod's packets, NODE/COMPONENT for others, and NODE where
// that is not known. A packet that was dropped has a comment that says why.
func Merge(to io.Writer, parts ...Part) (Count, error) {
	count := newCount()
	var sources []pcapng.Source
	for _, part := range parts {
		more, err := part.sources(count, nil)
		if err != nil {
			closeAll(sources)
			return Count{}, err
		}
		sources = append(sources, more...)
	}
	w, err := pcapng.NewWriter(to, application)
	if err == nil {
		_, err = pcapng.Merge(w, sources...)
	}
	if err != nil {
		closeAll(sources)
	}
	return *count, err
}
