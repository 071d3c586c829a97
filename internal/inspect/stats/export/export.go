// Package export exposes the readings of a watch as Prometheus metrics.
package export

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

// exportFor is the time for which a container is exported after its last sample.
const exportFor = time.Minute

// Exporter keeps the latest row of every container. It is safe for concurrent use.
type Exporter struct {
	registry  *prometheus.Registry
	anomalies *prometheus.CounterVec
	calls     *prometheus.CounterVec
	latency   *prometheus.HistogramVec

	mu     sync.Mutex
	latest map[stats.Key]stats.Row

	reported, computed, seconds, memory, limit, age *prometheus.Desc
}

// New returns an Exporter without containers.
func New() *Exporter {
	container := []string{"node", "source", "namespace", "pod", "container"}
	describe := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, container, nil) }
	e := &Exporter{
		registry: prometheus.NewRegistry(),
		latest:   map[stats.Key]stats.Row{},
		anomalies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "swdt_stats_anomalies_total", Help: "Samples of all callers that got a verdict.",
		}, append(container, "verdict")),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "swdt_stats_calls_total", Help: "Requests to a source, by result.",
		}, []string{"node", "source", "result"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "swdt_stats_call_duration_seconds", Help: "Time that a source took to answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"node", "source"}),
		reported: describe("swdt_container_cpu_reported_cores",
			"CPU usage as the source reports it (usageNanoCores); absent if the source reports none."),
		computed: describe("swdt_container_cpu_computed_cores",
			"CPU usage computed from the counter over 10 s or more."),
		seconds: describe("swdt_container_cpu_usage_seconds_total",
			"CPU time used since the container started (usageCoreNanoSeconds)."),
		memory: describe("swdt_container_memory_working_set_bytes", "Working set."),
		limit: describe("swdt_container_cpu_limit_cores",
			"CPU limit; absent if there is none, or if the limit is unknown."),
		age: describe("swdt_container_sample_age_seconds",
			"Age of the sample when it was received: this machine's clock minus the node's timestamp."),
	}
	e.registry.MustRegister(e, e.anomalies, e.calls, e.latency)
	return e
}

// Add counts a reading and its verdicts. rows are the rows that a Follower returned for the
// reading. Add keeps the rows of caller 0.
func (e *Exporter) Add(r stats.Reading, rows []stats.Row) {
	source := string(r.Source)
	if r.Err != "" {
		e.calls.WithLabelValues(r.Node, source, "error").Inc()
		return
	}
	e.calls.WithLabelValues(r.Node, source, "ok").Inc()
	e.latency.WithLabelValues(r.Node, source).Observe(r.Latency.Seconds())
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, row := range rows {
		for _, v := range row.Verdicts {
			e.anomalies.WithLabelValues(append(labels(row.Key), string(v))...).Inc()
		}
		if row.Key.Caller == 0 {
			e.keep(row)
		}
	}
	for key, row := range e.latest {
		if key.Source == r.Source && key.Container.Node == r.Node && r.Received.Sub(row.Point.Received) > exportFor {
			delete(e.latest, key)
		}
	}
}

// keep stores a row as the latest row of its container. It removes the rows that the container had
// under other IDs, before its restarts.
func (e *Exporter) keep(row stats.Row) {
	if _, known := e.latest[row.Key]; !known {
		for key := range e.latest {
			if key.Source == row.Key.Source && key.Container.Node == row.Key.Container.Node &&
				key.Container.Path() == row.Key.Container.Path() {
				delete(e.latest, key)
			}
		}
	}
	e.latest[row.Key] = row
}

func labels(k stats.Key) []string {
	return []string{k.Container.Node, string(k.Source), k.Container.Namespace, k.Container.Pod, k.Container.Name}
}

// Handler serves the metrics, in the OpenMetrics format if the client accepts it.
func (e *Exporter) Handler() http.Handler {
	return promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Gatherer returns the source of the metrics, for tests and other ways to serve them.
func (e *Exporter) Gatherer() prometheus.Gatherer { return e.registry }

// Describe implements prometheus.Collector.
func (e *Exporter) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{e.reported, e.computed, e.seconds, e.memory, e.limit, e.age} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (e *Exporter) Collect(to chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, row := range e.latest {
		names := labels(key)
		give := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
			to <- prometheus.MustNewConstMetric(d, kind, v, names...)
		}
		if row.Point.Reported != nil {
			give(e.reported, prometheus.GaugeValue, stats.Cores(*row.Point.Reported))
		}
		if row.Computed != nil {
			give(e.computed, prometheus.GaugeValue, *row.Computed)
		}
		if row.Point.Counter != nil {
			give(e.seconds, prometheus.CounterValue, stats.Cores(*row.Point.Counter))
		}
		if row.Point.Memory != nil {
			give(e.memory, prometheus.GaugeValue, float64(*row.Point.Memory))
		}
		if row.Limit > 0 {
			give(e.limit, prometheus.GaugeValue, row.Limit)
		}
		give(e.age, prometheus.GaugeValue, max(0, row.Age.Seconds()))
	}
}
