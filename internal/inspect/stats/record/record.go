// Package record writes and reads recordings of readings. A recording is a file of
// consecutive zstd frames with lines of JSON, so that `zstdcat` prints it. Every frame is
// independent and has a checksum: a kill or a full disk cuts off only the last frame, and a
// later recording is appended after the complete frames.
//
//   - record.go: the format of the lines
//   - writer.go, reader.go, frames.go: the file
package record

import (
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

// Version is the version of the format.
const Version = 1

// Meta describes a recording. It is the first line of each recording in a file.
type Meta struct {
	Version   int            `json:"swdtStats"`
	Started   time.Time      `json:"started"`
	Interval  string         `json:"interval,omitempty"`
	Callers   int            `json:"callers"` // the callers in addition to the watch itself
	Sources   []stats.Source `json:"sources"`
	Tolerance float64        `json:"tolerance"`
	Nodes     []NodeFacts    `json:"nodes,omitempty"`
}

// NodeFacts describe a node at the time of the recording.
type NodeFacts struct {
	Name    string  `json:"name"`
	Windows string  `json:"windows,omitempty"` // such as Windows Server 2022 Datacenter 20348.2849
	Cores   float64 `json:"cores,omitempty"`
	Runtime string  `json:"runtime,omitempty"` // containerd v1.7.12
	Kubelet string  `json:"kubelet,omitempty"`
	Note    string  `json:"note,omitempty"` // a remark, for example that the node is simulated
}

// line is a line of a recording. Exactly one of its fields is set.
type line struct {
	Meta      *Meta      `json:"meta,omitempty"`
	Node      *NodeFacts `json:"node,omitempty"`
	Container *container `json:"container,omitempty"`
	Reading   *reading   `json:"reading,omitempty"`
	Levels    *levels    `json:"levels,omitempty"`
}

// levels is a stats.Levels with its time in nanoseconds since 1970.
type levels struct {
	Node   string        `json:"node"`
	Taken  int64         `json:"t"`
	Levels []stats.Level `json:"l"`
}

// container is a line about a container. It is recorded once, and again when the container's limit
// changes. Samples have the number of their container.
type container struct {
	Number int `json:"n"`
	stats.Container
	Limit float64 `json:"limit,omitempty"`
}

// reading is a stats.Reading with its times in nanoseconds since 1970.
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

// sample is [container, taken, reported, counter, memory]; if the answer lacks a number,
// the number is null.
type sample [5]*int64
