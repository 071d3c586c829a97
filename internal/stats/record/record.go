// Package record is recordings of readings: a file of zstd frames, one after the
// other, each with lines of JSON, so that `zstdcat` shows it. Every frame is whole
// in itself and has a checksum: what a kill or a full disk cuts off is the last
// frame, and a later recording is appended behind the whole ones.
//
//   - record.go: what the lines hold
//   - writer.go, reader.go, frames.go: the file
package record

import (
	"time"

	"github.com/swdt-dev/swdt/internal/stats"
)

// Version of the format.
const Version = 1

// Meta is what was recorded: the first line of each recording in a file.
type Meta struct {
	Version   int            `json:"swdtStats"`
	Started   time.Time      `json:"started"`
	Interval  string         `json:"interval,omitempty"`
	Callers   int            `json:"callers"` // beside the one that watches
	Sources   []stats.Source `json:"sources"`
	Tolerance float64        `json:"tolerance"`
	Nodes     []NodeFacts    `json:"nodes,omitempty"`
}

// NodeFacts are what a node was.
type NodeFacts struct {
	Name    string  `json:"name"`
	Windows string  `json:"windows,omitempty"` // Windows Server 2022 Datacenter 20348.2700
	Cores   float64 `json:"cores,omitempty"`
	Runtime string  `json:"runtime,omitempty"` // containerd v1.7.12
	Kubelet string  `json:"kubelet,omitempty"`
	Note    string  `json:"note,omitempty"` // a simulated one says so
}

// line is one of a recording: exactly one of its fields.
type line struct {
	Meta      *Meta      `json:"meta,omitempty"`
	Node      *NodeFacts `json:"node,omitempty"`
	Container *container `json:"container,omitempty"`
	Reading   *reading   `json:"reading,omitempty"`
}

// container is told of once; samples name it by its number.
type container struct {
	Number int `json:"n"`
	stats.Container
	Limit float64 `json:"limit,omitempty"`
}

// reading has its times as nanoseconds since 1970.
type reading struct {
	Node     string       `json:"node,omitempty"`
	Source   stats.Source `json:"source"`
	Caller   int          `json:"caller,omitempty"`
	Received int64        `json:"t"`
	Latency  int64        `json:"took"`
	Cores    float64      `json:"cores,omitempty"`
	Err      string       `json:"error,omitempty"`
	Samples  []sample     `json:"s,omitempty"`
}

// sample is [container, taken, reported, counter, memory]; what the answer does
// not have is null.
type sample [5]*int64
