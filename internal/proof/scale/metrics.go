package scale

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// The metrics of kube-proxy that are read (kubernetes v1.36.3, pkg/proxy/metrics/metrics.go). Windows' proxier registers
// network_programming_duration and never sets it, so the time until a change is programmed follows from the two
// timestamps. The numbers of pending changes have no label: one number counts for all IP families.
const (
	syncDuration     = "kubeproxy_sync_proxy_rules_duration_seconds"
	lastQueued       = "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds"
	lastSync         = "kubeproxy_sync_proxy_rules_last_timestamp_seconds"
	pendingEndpoints = "kubeproxy_sync_proxy_rules_endpoint_changes_pending"
	pendingServices  = "kubeproxy_sync_proxy_rules_service_changes_pending"
	lbFailures       = "kubeproxy_sync_proxy_rules_winkernel_lb_" // Kubernetes 1.37 and newer
)

// syncTolerance is how much earlier than the change that started it a sync may seem to have begun, in
// seconds: kube-proxy measures a sync and its end at slightly different moments.
const syncTolerance = 0.05

// maxFamilies bounds the number of label values that are kept: a node may send any.
const maxFamilies = 64

// proxyMetrics are kube-proxy's metrics at one moment.
type proxyMetrics struct {
	services, endpoints float64 // changes that the next sync will program

	families map[string]*family // by the label ip_family
	failures map[string]float64 // of load balancers in HNS, by the kind of failure
}

// family has the metrics of one IP family. Times are in seconds since 1970, by the node's clock.
type family struct {
	queued, synced       float64
	syncs, syncSeconds   float64
	took                 float64             // by the last sync, in seconds; 0: unknown
	buckets              map[float64]float64 // the number of syncs that took at most this many seconds
	hasQueued, hasSynced bool
}

// parseMetrics reads the text of kube-proxy's metrics, and ignores all that it does not know. It returns
// false if there are none of kube-proxy, or if the text is damaged: a change may be pending in the rest.
func parseMetrics(text []byte) (proxyMetrics, bool) {
	m := proxyMetrics{families: map[string]*family{}, failures: map[string]float64{}}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return m, false
	}
	for name, metrics := range all {
		for _, metric := range metrics.GetMetric() {
			m.take(name, metric)
		}
	}
	return m, len(m.families) > 0
}

func (m *proxyMetrics) take(name string, metric *dto.Metric) {
	labels := map[string]string{}
	for _, label := range metric.GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	// A metric has one of these values. The others are 0.
	value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + metric.GetUntyped().GetValue() +
		metric.GetHistogram().GetSampleSum()
	if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
		return
	}
	if kind, ok := strings.CutPrefix(name, lbFailures); ok {
		if value > 0 && len(m.failures) < maxFamilies {
			m.failures[strings.TrimSuffix(kind, "_failures_total")+" "+labels["lb_type"]] += value
		}
		return
	}
	switch name {
	case pendingEndpoints:
		m.endpoints += value
		return
	case pendingServices:
		m.services += value
		return
	case syncDuration, lastQueued, lastSync:
	default:
		return
	}
	f := m.families[labels["ip_family"]]
	if f == nil {
		if len(m.families) >= maxFamilies {
			return
		}
		f = &family{buckets: map[float64]float64{}}
		m.families[labels["ip_family"]] = f
	}
	switch name {
	case lastQueued:
		f.queued, f.hasQueued = value, true
	case lastSync:
		f.synced, f.hasSynced = value, true
	case syncDuration:
		f.syncs, f.syncSeconds = float64(metric.GetHistogram().GetSampleCount()), value
		buckets := metric.GetHistogram().GetBucket()
		for _, bucket := range buckets[:min(len(buckets), maxFamilies)] {
			f.buckets[bucket.GetUpperBound()] = float64(bucket.GetCumulativeCount())
		}
	}
}

// follow takes over from the metrics at an earlier moment how long the last sync took.
func (m proxyMetrics) follow(earlier proxyMetrics) {
	for name, f := range m.families {
		was := earlier.families[name]
		switch {
		case was == nil:
		case f.syncs == was.syncs:
			f.took = was.took
		case f.syncs == was.syncs+1:
			f.took = max(f.syncSeconds-was.syncSeconds, 0)
		}
	}
}

// settled reports whether kube-proxy has programmed all that it knows of, in each IP family: no change is
// pending, and the last sync ended after the last change was queued. It also must have begun after that, if
// its duration is known: kube-proxy takes pending changes over when a sync begins. settled returns the end of
// the latest of these syncs, and the time when the last change was queued, in seconds since 1970, by the
// node's clock.
func (m proxyMetrics) settled() (at time.Time, queued float64, ok bool) {
	if m.services+m.endpoints > 0 {
		return time.Time{}, 0, false
	}
	latest := 0.0
	for _, f := range m.families {
		if !f.hasQueued || f.queued == 0 { // no change was ever queued in this family
			continue
		}
		if !f.hasSynced || f.synced < f.queued ||
			f.took > syncTolerance && f.synced-f.took < f.queued-syncTolerance {
			return time.Time{}, 0, false
		}
		latest, queued = max(latest, f.synced), max(queued, f.queued)
	}
	if latest == 0 || latest > math.MaxInt32*1000.0 {
		return time.Time{}, 0, false
	}
	seconds, part := math.Modf(latest)
	return time.Unix(int64(seconds), int64(part*1e9)), queued, true
}

// Syncs are the synchronizations of kube-proxy's rules in a phase.
type Syncs struct {
	Count       int     `json:"count"`
	MeanSeconds float64 `json:"meanSeconds"`
	// MaxSeconds is the upper bound of the histogram's bucket that has the longest sync; 0 if no sync
	// ended, or if the longest one took more than the largest bucket.
	MaxSeconds float64 `json:"maxSeconds"`
}

// since returns the syncs since an earlier moment. If kube-proxy was restarted meanwhile, it counts
// those since the restart.
func (m proxyMetrics) since(earlier proxyMetrics) Syncs {
	var s Syncs
	var count, seconds float64
	buckets := map[float64]float64{}
	for name, f := range m.families {
		was := earlier.families[name]
		if was == nil || was.syncs > f.syncs {
			was = &family{}
		}
		count, seconds = count+f.syncs-was.syncs, seconds+f.syncSeconds-was.syncSeconds
		for most, n := range f.buckets {
			buckets[most] += n - was.buckets[most]
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
