//go:build oracles

package export_test

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/export"
)

// TestPromtoolAcceptsTheMetrics gives the metrics, of healthy and of failed samples, to Prometheus' own promtool, which
// reads them as a server does and checks their names.
func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	exporter, follower := export.New(), stats.NewFollower(stats.DefaultTolerance)
	for i := range 30 {
		r := reading(i, "1", stats.Value(5e8))
		exporter.Add(r, follower.Add(r))
	}
	for _, r := range []stats.Reading{reading(30, "1", stats.Value(0)),
		{Node: "win", Source: stats.CRI, Err: "gone"}, reading(31, "2", nil)} {
		exporter.Add(r, follower.Add(r))
		recorder := httptest.NewRecorder() // promtool reads the older text format, which a request without Accept gets
		exporter.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		text := recorder.Body.String()
		command := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
		command.Stdin = strings.NewReader(text)
		if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %s\n%s", err, out, text)
		}
	}
}
