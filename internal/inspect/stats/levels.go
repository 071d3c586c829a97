package stats

import (
	"strings"
	"time"
)

// Level is a number that should stay about the same for hours, such as the handles of a program.
type Level struct {
	Of       string  `json:"of"`          // kubelet, or NAMESPACE/POD/CONTAINER
	Measure  string  `json:"m"`           // see the constants
	Instance string  `json:"i,omitempty"` // changes with each start of a program; empty: it has none
	Value    float64 `json:"v"`
}

// Levels are the numbers of one look at a node.
type Levels struct {
	Node   string
	Taken  time.Time // by this machine's clock
	Levels []Level
}

// Measures. Those of memory and disk are in bytes.
const (
	Handles       = "handles"
	Threads       = "threads"
	WorkingSet    = "working set"
	Commit        = "committed memory"
	MemoryUsed    = "memory in use"
	DiskFree      = "free disk"
	ImageBytes    = "images and snapshots"
	Shims         = "shims"
	ShimsUnowned  = "shims without a pod"
	Pods          = "pod sandboxes"
	Containers    = "containers"
	HNSEndpoints  = "HNS endpoints"
	HNSBalancers  = "HNS load balancers"
	HNSNamespaces = "HNS namespaces"
)

// InBytes reports whether a measure is in bytes.
func InBytes(measure string) bool {
	for _, m := range []string{WorkingSet, Commit, MemoryUsed, DiskFree, ImageBytes} {
		if strings.HasPrefix(measure, m) {
			return true
		}
	}
	return false
}
