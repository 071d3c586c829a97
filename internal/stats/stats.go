// Package stats holds what is reported about containers' CPU time against what
// is computed from it: the model of samples, the honest rate, and the verdicts
// on samples that cannot be true. It is pure: no clocks, no connections.
//
//   - stats.go: samples, readings, series
//   - rate.go: cores computed from the counter
//   - rules.go, judge.go: the verdicts, each with its formula and its cause
//   - tally.go, compare.go: what many readings amount to, and two of them side by side
package stats

import (
	"time"
)

// Source is where samples come from.
type Source string

const (
	CRI     Source = "cri"     // the container runtime's ListContainerStats
	Summary Source = "summary" // the kubelet's /stats/summary
	Node    Source = "node"    // the process that the node itself has
)

// Sources are all of them, in the order in which they are shown.
func Sources() []Source { return []Source{CRI, Summary, Node} }

// Container is whom numbers are about. Two samples with equal Containers are of
// the same life of the same container.
type Container struct {
	Node      string `json:"node,omitempty"`
	ID        string `json:"id,omitempty"` // the runtime's; with the kubelet's summary, its start
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod"`
	Name      string `json:"name,omitempty"` // empty: the pod as a whole
}

// Path is namespace/pod/name: the same container, whoever reports and however
// often it was restarted.
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

// Sample is what one answer says about one container. A nil number is one that
// the answer does not have, which is not 0.
type Sample struct {
	Container Container
	Taken     time.Time // by the node's clock
	Reported  *uint64   // usageNanoCores: billionths of a core
	Counter   *uint64   // usageCoreNanoSeconds: CPU time since the start, in nanoseconds
	Memory    *uint64   // working set in bytes
	Limit     float64   // cores; 0: none, or not known
}

// Reading is one answer of one source to one of its callers.
type Reading struct {
	Node     string
	Source   Source
	Caller   int       // 0 is the one that watches, others only ask too
	Received time.Time // by this machine's clock
	Latency  time.Duration
	Cores    float64 // of the node; 0: not known
	Samples  []Sample
	Err      string // what went wrong, where there is no answer
}

// Key names a series. Callers are kept apart, since each has its answers in the
// order in which it asked.
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

// Cores are billionths of a core as cores.
func Cores(nano uint64) float64 { return float64(nano) / 1e9 }

// Value is a pointer to v: a number that is there.
func Value(v uint64) *uint64 { return &v }
