package proxier

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// version is that of the kube-proxy that the stand-in follows.
const version = "v1.36.3"

// counter is a number that several goroutines change.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
}

func (c *counter) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n = 0
}

func (c *counter) value() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// metrics are the metrics that kube-proxy on Windows sets.
type metrics struct {
	pendingServices, pendingEndpoints counter

	mu           sync.Mutex
	queued, last time.Time
	durations    []time.Duration
}

func (m *metrics) queue() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queued = time.Now()
}

func (m *metrics) synced(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = time.Now()
	m.durations = append(m.durations, took)
}

// serve answers with the metrics in the names, labels and buckets of kube-proxy (kubernetes v1.36.3,
// pkg/proxy/metrics/metrics.go): all have the IP family as label, except the numbers of pending changes.
func (m *metrics) serve(w http.ResponseWriter, _ *http.Request) {
	services, endpoints := m.pendingServices.value(), m.pendingEndpoints.value()
	m.mu.Lock()
	defer m.mu.Unlock()
	const family = `{ip_family="IPv4"}`
	fmt.Fprintf(w, "# TYPE kubernetes_build_info gauge\nkubernetes_build_info{git_version=%q,go_version=\"go1.26\"} 1\n", version)
	gauge := func(name string, value float64) { fmt.Fprintf(w, "# TYPE %s gauge\n%s %g\n", name, name, value) }
	const prefix = "kubeproxy_sync_proxy_rules_"
	// The real one has 94 kB of metrics (v1.36.3), most of which are about features and requests.
	fmt.Fprintln(w, "# TYPE kubernetes_feature_enabled gauge")
	for i := range 1000 {
		fmt.Fprintf(w, "kubernetes_feature_enabled{name=\"AFeatureGateOfKubernetesWithALongName%d\",stage=\"BETA\"} 1\n", i)
	}
	gauge(prefix+"endpoint_changes_pending", float64(endpoints))
	gauge(prefix+"service_changes_pending", float64(services))
	fmt.Fprintf(w, "%slast_queued_timestamp_seconds%s %.6f\n", prefix, family, unix(m.queued))
	fmt.Fprintf(w, "%slast_timestamp_seconds%s %.6f\n", prefix, family, unix(m.last))
	sum := 0.0
	for _, d := range m.durations {
		sum += d.Seconds()
	}
	fmt.Fprintf(w, "# TYPE %sduration_seconds histogram\n", prefix)
	for most := 0.001; most < 20; most *= 2 {
		n := 0
		for _, d := range m.durations {
			if d.Seconds() <= most {
				n++
			}
		}
		fmt.Fprintf(w, "%sduration_seconds_bucket{ip_family=\"IPv4\",le=\"%g\"} %d\n", prefix, most, n)
	}
	fmt.Fprintf(w, "%sduration_seconds_bucket{ip_family=\"IPv4\",le=\"+Inf\"} %d\n", prefix, len(m.durations))
	fmt.Fprintf(w, "%sduration_seconds_sum%s %g\n", prefix, family, sum)
	fmt.Fprintf(w, "%sduration_seconds_count%s %d\n", prefix, family, len(m.durations))
}

// unix returns a time in seconds since 1970; 0 for the zero time, as a gauge that was never set.
func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixNano()) / 1e9
}
