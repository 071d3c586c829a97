package ui

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vbauerster/mpb/v8/decor"
)

// A live line says how long its step has run, also if the step's text is too long for the terminal.
func TestLiveLineHasTheAgeOfALongStep(t *testing.T) {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	line := liveLine{node: "win-1", now: func() time.Time { return clock }}
	drawn := func(columns int) string {
		t.Helper()
		var b strings.Builder
		if err := line.fill(&b, decor.Statistics{AvailableWidth: columns}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	line.set("waiting for kubelet")
	begun := drawn(60)
	clock = clock.Add(75 * time.Second)
	later, narrow, narrowest := drawn(60), drawn(20), drawn(4)
	line.set("stopping kubelet")
	next := drawn(60)

	want := []string{
		"win-1: waiting for kubelet",
		"win-1: waiting for kubelet, 1m",
		"win-1: waiting…, 1m",
		"wi…",
		"win-1: stopping kubelet",
	}
	if diff := cmp.Diff(want, []string{begun, later, narrow, narrowest, next}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
