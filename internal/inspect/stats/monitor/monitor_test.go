package monitor

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

// If a watch has several nodes and callers, a source that fails is named, once.
func TestFailingSourceIsReportedOnce(t *testing.T) {
	var said []string
	w := &Show{Warn: func(text string) { said = append(said, text) }, failing: map[string]bool{}}
	for range 3 {
		w.complain(stats.Reading{Node: "one", Source: stats.CRI})
		w.complain(stats.Reading{Node: "two", Source: stats.CRI, Err: "gone"})
		w.complain(stats.Reading{Node: "two", Source: stats.CRI, Caller: 1})
	}
	w.complain(stats.Reading{Node: "two", Source: stats.CRI})
	w.complain(stats.Reading{Node: "two", Source: stats.CRI, Err: "again"})
	want := []string{"warning: two: cri does not answer: gone", "warning: two: cri does not answer: again"}
	if !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
}

// A pod without a limit may also use the cores that are reserved for the system.
func TestCoresOfANode(t *testing.T) {
	for allocatable, want := range map[int64]float64{0: 0, 1500: 2, 3920: 4, 4000: 4} {
		if got := nodeCores(cluster.Node{Allocatable: cluster.Resources{MilliCPU: allocatable}}); got != want {
			t.Errorf("of %d thousandths: %v", allocatable, got)
		}
	}
}

// The table of a long watch does not fill up with containers that have ended.
func TestTheTableForgetsWhatHasEnded(t *testing.T) {
	var out bytes.Buffer
	table, follower := newTable(&out, "faults"), stats.NewFollower(stats.DefaultTolerance)
	began := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	show := func(second int, err string, pods ...string) {
		t.Helper()
		r := stats.Reading{Node: "win", Source: stats.CRI, Received: began.Add(time.Duration(second) * time.Second),
			Err: err}
		for _, pod := range pods {
			r.Samples = append(r.Samples, stats.Sample{Container: stats.Container{Node: "win", Pod: pod},
				Taken: r.Received})
		}
		out.Reset()
		if err := table.rows(r, follower.Add(r)); err != nil {
			t.Fatal(err)
		}
	}
	show(0, "", "stays", "ends")
	show(30, "", "stays")
	if !strings.Contains(out.String(), "ends") {
		t.Errorf("it is forgotten at once: %s", &out)
	}
	show(70, "no answer")
	if !strings.Contains(out.String(), "ends") {
		t.Errorf("a source that does not answer has ended nothing: %s", &out)
	}
	show(80, "", "stays")
	if strings.Contains(out.String(), "ends") || !strings.Contains(out.String(), "stays") {
		t.Errorf("%s", &out)
	}
}
