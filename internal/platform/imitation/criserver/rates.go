package criserver

import (
	"strings"
	"sync"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// rates are the runtime's own measurements of a container's CPU use, with the defects of containerd on Windows:
// https://github.com/containerd/containerd/issues/9531. The generations are those of the tags v1.7.12, v2.2.1 and v2.3.0,
// container_stats_list.go, getUsageNanoCores; the collector of 2.3 does nothing on Windows (stats_collector_other.go).
type rates struct {
	generation generation

	mu   sync.Mutex
	last map[string]stored // counter of the previous call for each container, whichever caller made the call
}

type stored struct {
	counter uint64
	taken   time.Time
}

// generation selects the containerd versions that fill usageNanoCores in the same way.
type generation int

const (
	absent    generation = iota // containerd before 1.7: the field is never set
	sinceLast                   // containerd 1.7 to 2.2: the field is always set, and 0 in the first call
	carefully                   // containerd 2.3 and newer: the field is not set in the first call
)

// tick is the step of Windows' counters of CPU time.
const tick = uint64(15625 * time.Microsecond)

func newRates(version string) *rates {
	version = strings.TrimPrefix(version, "v")
	r := &rates{generation: sinceLast, last: map[string]stored{}}
	switch {
	case strings.HasPrefix(version, "1.6."), strings.HasPrefix(version, "1.5."):
		r.generation = absent
	case strings.HasPrefix(version, "2.") && !strings.HasPrefix(version, "2.0.") &&
		!strings.HasPrefix(version, "2.1.") && !strings.HasPrefix(version, "2.2."):
		r.generation = carefully
	}
	return r
}

// of returns a container's rate: the difference between this counter and the counter of the
// previous call, divided by the time between the two calls. It stores this counter for the next
// call.
func (r *rates) of(id string, counter uint64, now time.Time) *runtimev1.UInt64Value {
	if r.generation == absent {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.last[id]
	r.last[id] = stored{counter, now}
	between := now.Sub(before.taken)
	if !known || between <= 0 || counter < before.counter {
		if r.generation == carefully {
			return nil
		}
		return &runtimev1.UInt64Value{}
	}
	return &runtimev1.UInt64Value{Value: uint64(float64(counter-before.counter) / float64(between) * 1e9)}
}

// ticks rounds a counter of CPU time down to a multiple of tick, as Windows counts.
func ticks(counter uint64) uint64 { return counter - counter%tick }
