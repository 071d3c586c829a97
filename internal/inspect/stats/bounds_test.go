package stats_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

// A runtime that names new containers in each of its answers does not exhaust the memory.
func TestSeriesOfALyingRuntimeAreBounded(t *testing.T) {
	const each, answers = 16 << 10, 8
	f, tally := stats.NewFollower(stats.DefaultTolerance), stats.NewTally()
	now := time.Now()
	for i := range answers {
		r := stats.Reading{Node: "n", Source: stats.CRI, Received: now.Add(time.Duration(i) * time.Millisecond)}
		for j := range each {
			name := fmt.Sprint(i, j)
			r.Samples = append(r.Samples, stats.Sample{Container: stats.Container{Node: "n", ID: name, Pod: name},
				Taken: now})
		}
		tally.Add(r, f.Add(r))
	}
	if kept := f.Kept(); kept > 80<<10 || kept < each {
		t.Errorf("%d series are kept", kept)
	}
	if of := tally.Summaries()[0].Containers; of > 64<<10 {
		t.Errorf("%d containers are kept", of)
	}
}
