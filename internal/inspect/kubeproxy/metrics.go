package kubeproxy

import (
	"bytes"
	"math"
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
	buildInfo        = "kubernetes_build_info"
)

// syncTolerance is how much earlier than the change that started it a sync may seem to have begun, in
// seconds: kube-proxy measures a sync and its end at slightly different moments.
const syncTolerance = 0.05

// MaxMetricFamilies bounds the number of label values that are kept: a node may send any.
const MaxMetricFamilies = 64

// maxVersion bounds the length of a version, in bytes.
const maxVersion = 64

// Metrics are kube-proxy's metrics at one moment.
type Metrics struct {
	Services, Endpoints float64 // changes that the next sync will program

	Families map[string]*MetricFamily // by the label ip_family
	Failures map[string]float64       // of load balancers in HNS, by the kind of failure
	Version  string                   // of kube-proxy, such as v1.36.3; "" if unknown
}

// MetricFamily has the metrics of one IP family. Times are in seconds since 1970, by the node's clock.
type MetricFamily struct {
	Queued, Synced       float64
	Syncs, SyncSeconds   float64
	Took                 float64             // by the last sync, in seconds; 0: unknown
	Buckets              map[float64]float64 // the number of syncs that took at most this many seconds
	HasQueued, HasSynced bool
}

// ParseMetrics reads the text of kube-proxy's metrics, and ignores all that it does not know. It returns
// false if there are none of kube-proxy, or if the text is damaged: a change may be pending in the rest.
func ParseMetrics(text []byte) (Metrics, bool) {
	m := Metrics{Families: map[string]*MetricFamily{}, Failures: map[string]float64{}}
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
	return m, len(m.Families) > 0
}

func (m *Metrics) take(name string, metric *dto.Metric) {
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
		if value > 0 && len(m.Failures) < MaxMetricFamilies {
			m.Failures[strings.TrimSuffix(kind, "_failures_total")+" "+labels["lb_type"]] += value
		}
		return
	}
	switch name {
	case buildInfo:
		if v := labels["git_version"]; len(v) < maxVersion {
			m.Version = v
		}
		return
	case pendingEndpoints:
		m.Endpoints += value
		return
	case pendingServices:
		m.Services += value
		return
	case syncDuration, lastQueued, lastSync:
	default:
		return
	}
	f := m.Families[labels["ip_family"]]
	if f == nil {
		if len(m.Families) >= MaxMetricFamilies {
			return
		}
		f = &MetricFamily{Buckets: map[float64]float64{}}
		m.Families[labels["ip_family"]] = f
	}
	switch name {
	case lastQueued:
		f.Queued, f.HasQueued = value, true
	case lastSync:
		f.Synced, f.HasSynced = value, true
	case syncDuration:
		f.Syncs, f.SyncSeconds = float64(metric.GetHistogram().GetSampleCount()), value
		buckets := metric.GetHistogram().GetBucket()
		for _, bucket := range buckets[:min(len(buckets), MaxMetricFamilies)] {
			f.Buckets[bucket.GetUpperBound()] = float64(bucket.GetCumulativeCount())
		}
	}
}

// Follow takes over from the metrics at an earlier moment how long the last sync took.
func (m Metrics) Follow(earlier Metrics) {
	for name, f := range m.Families {
		was := earlier.Families[name]
		switch {
		case was == nil:
		case f.Syncs == was.Syncs:
			f.Took = was.Took
		case f.Syncs == was.Syncs+1:
			f.Took = max(f.SyncSeconds-was.SyncSeconds, 0)
		}
	}
}

// Settled reports whether kube-proxy has programmed all that it knows of, in each IP family: no change is
// pending, and the last sync ended after the last change was queued. It also must have begun after that, if
// its duration is known: kube-proxy takes pending changes over when a sync begins. Settled returns the end of
// the latest of these syncs, and the time when the last change was queued, in seconds since 1970, by the
// node's clock.
func (m Metrics) Settled() (at time.Time, queued float64, ok bool) {
	if m.Services+m.Endpoints > 0 {
		return time.Time{}, 0, false
	}
	latest := 0.0
	for _, f := range m.Families {
		if !f.HasQueued || f.Queued == 0 { // no change was ever queued in this family
			continue
		}
		if !f.HasSynced || f.Synced < f.Queued ||
			f.Took > syncTolerance && f.Synced-f.Took < f.Queued-syncTolerance {
			return time.Time{}, 0, false
		}
		latest, queued = max(latest, f.Synced), max(queued, f.Queued)
	}
	if latest == 0 || latest > math.MaxInt32*1000.0 {
		return time.Time{}, 0, false
	}
	seconds, part := math.Modf(latest)
	return time.Unix(int64(seconds), int64(part*1e9)), queued, true
}
