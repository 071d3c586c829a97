package scale

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
)

// Syncs are the synchronizations of kube-proxy's rules in a phase.
type Syncs struct {
	Count       int     `json:"count"`
	MeanSeconds float64 `json:"meanSeconds"`
	// MaxSeconds is the upper bound of the histogram's bucket that has the longest sync; 0 if no sync
	// ended, or if the longest one took more than the largest bucket.
	MaxSeconds float64 `json:"maxSeconds"`
}

// syncsSince returns the syncs since an earlier moment. If kube-proxy was restarted meanwhile, it counts
// those since the restart.
func syncsSince(m, earlier kubeproxy.Metrics) Syncs {
	var s Syncs
	var count, seconds float64
	buckets := map[float64]float64{}
	for name, f := range m.Families {
		was := earlier.Families[name]
		if was == nil || was.Syncs > f.Syncs {
			was = &kubeproxy.MetricFamily{}
		}
		count, seconds = count+f.Syncs-was.Syncs, seconds+f.SyncSeconds-was.SyncSeconds
		for most, n := range f.Buckets {
			buckets[most] += n - was.Buckets[most]
		}
	}
	if count < 1 || count > math.MaxInt32 {
		return s
	}
	s.Count, s.MeanSeconds = int(count), max(seconds, 0)/count
	for _, most := range slices.Sorted(maps.Keys(buckets)) {
		if buckets[most] >= count {
			s.MaxSeconds = cmp.Or(s.MaxSeconds, most)
		}
	}
	if math.IsInf(s.MaxSeconds, 0) {
		s.MaxSeconds = 0
	}
	return s
}
