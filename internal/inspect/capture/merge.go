package capture

import (
	"io"
	"maps"

	"github.com/swdt-dev/swdt/internal/format/pcapng"
)

// application is the name of swdt in capture files.
const application = "swdt"

// Part has the packets of one node. Merge merges these packets with the packets of other nodes.
type Part struct {
	Names
	Export Export
}

// Count is the number of packets in a file.
type Count struct {
	Packets    int            `json:"packets"` // including dropped ones
	Drops      int            `json:"drops"`
	Interfaces map[string]int `json:"interfaces"` // number of packets by interface
}

func newCount() *Count { return &Count{Interfaces: map[string]int{}} }

// Plus returns the sum of two counts.
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

// Merge writes the captures of nodes as one capture. The interfaces in the written capture are
// named NODE/NAMESPACE/POD for a pod's packets, NODE/COMPONENT for other packets, and NODE if
// neither the pod nor the component is known. A dropped packet has a comment with the reason.
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
