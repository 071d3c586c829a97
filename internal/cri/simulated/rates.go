package simulated

import (
	"strings"
	"sync"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// rates are the runtime's own idea of how fast a container burns time, with the
// faults of containerd on Windows: https://github.com/containerd/containerd/issues/9531.
type rates struct {
	generation generation

	mu   sync.Mutex
	last map[string]stored // by container: of the call before, whoever made it
}

type stored struct {
	counter uint64
	taken   time.Time
}

// generation of containerd: how it fills usageNanoCores.
type generation int

const (
	absent    generation = iota // before 1.7: never
	sinceLast                   // 1.7: always, 0 at first
	carefully                   // 2.3 and newer: not at first
)

// tick is by how much Windows' counters of CPU time advance.
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

// of a container whose counter stands at so much now: the difference to the
// sample of the last call, which this one replaces.
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

// ticks cuts a counter to those of Windows.
func ticks(counter uint64) uint64 { return counter - counter%tick }
