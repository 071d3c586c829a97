package export_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/export"
)

func reading(second int, id string, reported *uint64) stats.Reading {
	at := time.Unix(1700000000+int64(second), 0)
	return stats.Reading{Node: "win", Source: stats.CRI, Received: at, Latency: 4 * time.Millisecond, Cores: 4,
		Samples: []stats.Sample{{
			Container: stats.Container{Node: "win", ID: id, Namespace: "default", Pod: "burner", Name: "burn"},
			Taken:     at.Add(-time.Second),
			Reported:  reported, Counter: stats.Value(uint64(second) * 5e8), Memory: stats.Value(21 << 20), Limit: 0.5,
		}}}
}

func TestPrometheusReadsTheMetrics(t *testing.T) {
	exporter, follower := export.New(), stats.NewFollower(stats.DefaultTolerance)
	add := func(r stats.Reading) { exporter.Add(r, follower.Add(r)) }
	for i := range 30 {
		add(reading(i, "1", stats.Value(5e8)))
	}
	add(reading(30, "1", stats.Value(0)))
	add(stats.Reading{Node: "win", Source: stats.CRI, Err: "gone"})

	if problems, err := testutil.GatherAndLint(exporter.Gatherer()); err != nil || len(problems) > 0 {
		t.Errorf("names against the conventions: %v, %v", problems, err)
	}
	text := scrape(t, exporter)
	const who = `{container="burn",namespace="default",node="win",pod="burner",source="cri"} `
	for _, want := range []string{
		"swdt_container_cpu_reported_cores" + who + "0.0\n", "swdt_container_cpu_computed_cores" + who + "0.5\n",
		"swdt_container_cpu_usage_seconds_total" + who + "15.0\n", "swdt_container_cpu_limit_cores" + who + "0.5\n",
		"swdt_container_sample_age_seconds" + who + "1.0\n",
		`swdt_stats_anomalies_total{container="burn",namespace="default",node="win",pod="burner",source="cri",` +
			`verdict="zero"} 1.0` + "\n",
		`swdt_stats_calls_total{node="win",result="error",source="cri"} 1.0` + "\n",
		`swdt_stats_call_duration_seconds_count{node="win",source="cri"} 31` + "\n", "# EOF",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}

	// The restarted container replaces the old one; otherwise a label set would occur twice.
	add(reading(31, "2", nil))
	text = scrape(t, exporter)
	if strings.Count(text, "\nswdt_container_cpu_usage_seconds_total{") != 1 ||
		strings.Contains(text, "\nswdt_container_cpu_reported_cores{") {
		t.Errorf("after a restart:\n%s", text)
	}
}

func scrape(t *testing.T, e *export.Exporter) string {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	recorder := httptest.NewRecorder()
	e.Handler().ServeHTTP(recorder, request)
	text, err := io.ReadAll(recorder.Result().Body)
	if err != nil || recorder.Code != http.StatusOK {
		t.Fatalf("%d, %v: %s", recorder.Code, err, text)
	}
	return string(text)
}
