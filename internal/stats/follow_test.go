package stats_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/stats"
)

// readings are those of one container that burns 0.25 cores, a second apart.
func readings(n int, caller int, reported func(i int) *uint64) []stats.Reading {
	var all []stats.Reading
	for i := range n {
		at := epoch().Add(time.Duration(i) * time.Second)
		all = append(all, stats.Reading{
			Node: "win", Source: stats.CRI, Caller: caller, Received: at, Latency: 3 * time.Millisecond, Cores: 4,
			Samples: []stats.Sample{{
				Container: stats.Container{Node: "win", ID: "1", Namespace: "default", Pod: "burner", Name: "burn"},
				Taken:     at.Add(-time.Millisecond), Counter: stats.Value(uint64(i) * 250_000_001), Reported: reported(i),
			}},
		})
	}
	return all
}

func TestTwoCallersOfARuntimeThatKeepsOneSample(t *testing.T) {
	follower, tally := stats.NewFollower(stats.DefaultTolerance), stats.NewTally()
	// Of each two calls one is made just after the other.
	first := readings(60, 0, func(i int) *uint64 { return stats.Value(uint64(i%2) * 250_000_000) })
	second := readings(60, 1, func(i int) *uint64 { return stats.Value(uint64((i+1)%2) * 250_000_000) })
	for i := range first {
		for _, r := range []stats.Reading{first[i], second[i]} {
			tally.Add(r, follower.Add(r))
		}
	}
	got := tally.Summaries()
	if len(got) != 1 {
		t.Fatalf("summaries %v", got)
	}
	s := got[0]
	// From the eleventh sample of each caller on, every other one is 0.
	if s.Verdicts[stats.Zero] != 50 || s.Calls != 120 || s.Containers != 1 || s.Ratio.Median > 1.01 || s.Ratio.Min != 0 {
		t.Errorf("got %+v", s)
	}
	if perMinute := s.PerMinute[stats.Zero]; perMinute < 49 || perMinute > 51 {
		t.Errorf("%v zeros a minute", perMinute)
	}
}

func TestAFollowerForgets(t *testing.T) {
	follower := stats.NewFollower(stats.DefaultTolerance)
	var rows []stats.Row
	for i := range 1000 {
		at := epoch().Add(time.Duration(i) * time.Second)
		r := stats.Reading{Source: stats.CRI, Received: at, Samples: []stats.Sample{
			{Container: stats.Container{ID: "stays", Pod: "a"}, Taken: at, Counter: stats.Value(uint64(i) * 5e8), Reported: stats.Value(5e8)},
			{Container: stats.Container{ID: fmt.Sprint(i), Pod: "b"}, Taken: at, Counter: stats.Value(1), Reported: stats.Value(0)},
		}}
		rows = follower.Add(r)
	}
	if rows[0].Computed == nil || *rows[0].Computed != 0.5 || len(rows[0].Faults()) != 0 {
		t.Errorf("row %+v", rows[0])
	}
	if kept := follower.Kept(); kept > 200 {
		t.Errorf("%d series are kept of 1001", kept)
	}
}

func TestAContainerWhoseTimestampStandsStill(t *testing.T) {
	follower := stats.NewFollower(stats.DefaultTolerance)
	var rows []stats.Row
	for i := range 60 {
		at := epoch().Add(time.Duration(i) * time.Second)
		rows = follower.Add(stats.Reading{Source: stats.Summary, Received: at, Samples: []stats.Sample{
			{Container: stats.Container{Pod: "a"}, Taken: at, Counter: stats.Value(uint64(i) * 5e8), Reported: stats.Value(5e8)},
			{Container: stats.Container{Pod: "b"}, Taken: epoch(), Counter: stats.Value(7), Reported: stats.Value(0)},
		}})
	}
	if len(rows[0].Verdicts) != 0 && slices.Contains(rows[0].Verdicts, stats.Stale) {
		t.Errorf("the one that moves is %v", rows[0].Verdicts)
	}
	if !slices.Equal(rows[1].Verdicts, []stats.Verdict{stats.Stale}) {
		t.Errorf("the one that stands still is %v", rows[1].Verdicts)
	}
}

// However long a watch is, its sums take no more room, and stay right.
func TestALongWatch(t *testing.T) {
	follower, tally := stats.NewFollower(stats.DefaultTolerance), stats.NewTally()
	const n = 200_000
	for i := range n {
		at := epoch().Add(time.Duration(i) * time.Second)
		r := stats.Reading{Source: stats.CRI, Received: at, Latency: time.Duration(i%100+1) * time.Millisecond, Samples: nil}
		tally.Add(r, follower.Add(r))
	}
	got := tally.Summaries()[0].LatencySeconds
	if got.Count != n || got.Min != 0.001 || got.Max != 0.1 || got.Median < 0.045 || got.Median > 0.055 {
		t.Errorf("%+v", got)
	}
}
