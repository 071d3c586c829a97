// Package stats compares the reported CPU usage of containers with the usage computed from
// their CPU time: it has the model of samples, the computed rate, and the verdicts on
// samples that cannot be true. The package uses neither clocks nor connections.
//
//   - stats.go: samples, readings, series
//   - rate.go: cores computed from the counter
//   - rules.go, judge.go: the verdicts, each with its formula and its cause
//   - follow.go: the series of many readings, judged as the readings arrive
//   - tally.go: the sums of many readings
package stats

import (
	"time"
)

// Source is a source of samples.
type Source string

const (
	CRI     Source = "cri"     // the container runtime's ListContainerStats
	Summary Source = "summary" // the kubelet's /stats/summary
	Node    Source = "node"    // the container's process, as the node itself lists it
)

// Sources returns all sources in the order in which they are printed.
func Sources() []Source { return []Source{CRI, Summary, Node} }

// Container identifies a container. Two samples with equal Containers are from the same
// container without a restart between them.
type Container struct {
	Node      string `json:"node,omitempty"`
	ID        string `json:"id,omitempty"` // the runtime's ID; for the kubelet's summary, the container's start time
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod"`
	Name      string `json:"name,omitempty"` // empty: the pod as a whole
}

// Path returns namespace/pod/name, which is the same for all sources and after restarts.
func (c Container) Path() string {
	path := c.Pod
	if c.Namespace != "" {
		path = c.Namespace + "/" + path
	}
	if c.Name != "" {
		path += "/" + c.Name
	}
	return path
}

// Sample is the part of one answer that describes one container. If the answer lacks a
// number, the number is nil, not 0.
type Sample struct {
	Container Container
	Taken     time.Time // by the node's clock
	Reported  *uint64   // usageNanoCores, in billionths of a core
	Counter   *uint64   // usageCoreNanoSeconds: the CPU time since the start, in nanoseconds
	Memory    *uint64   // working set in bytes
	Limit     float64   // the CPU limit in cores; 0: no limit, or not known
}

// Reading is one answer of one source to one of its callers.
type Reading struct {
	Node     string
	Source   Source
	Caller   int       // 0 is the watch itself; the other callers only ask at the same moments
	Received time.Time // by this machine's clock
	Latency  time.Duration
	Cores    float64 // the node's number of cores; 0: not known
	Samples  []Sample
	Err      string // the error; empty if there is an answer
}

// Key identifies a series. Each caller has its own series, since only the answers to one
// caller are in the order of the requests.
type Key struct {
	Container Container
	Source    Source
	Caller    int
}

// Point is a Sample in its series.
type Point struct {
	Taken    time.Time
	Received time.Time
	Reported *uint64
	Counter  *uint64
	Memory   *uint64
}

// Cores converts billionths of a core to cores.
func Cores(nano uint64) float64 { return float64(nano) / 1e9 }

// Value returns a pointer to v, for a number that an answer contains.
func Value(v uint64) *uint64 { return &v }
