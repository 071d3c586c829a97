package stats_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

// readings returns n readings, a second apart, of one container that uses 0.25 cores.
func readings(n int, caller int, reported func(i int) *uint64) []stats.Reading {
	var all []stats.Reading
	for i := range n {
		at := epoch().Add(time.Duration(i) * time.Second)
		all = append(all, stats.Reading{
			Node: "win", Source: stats.CRI, Caller: caller, Received: at, Latency: 3 * time.Millisecond, Cores: 4,
			Samples: []stats.Sample{{
				Container: stats.Container{Node: "win", ID: "1", Namespace: "default", Pod: "burner", Name: "burn"},
				Taken:     at.Add(-time.Millisecond), Counter: stats.Value(uint64(i) * 250_000_001),
				Reported: reported(i),
			}},
		})
	}
	return all
}

func TestTwoCallersOfARuntimeThatKeepsOneSample(t *testing.T) {
	follower, tally := stats.NewFollower(stats.DefaultTolerance), stats.NewTally()
	// At each moment one caller asks just after the other, and gets 0.
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
	// From the eleventh sample of each caller on, every other one is judged as zero.
	switch {
	case s.Verdicts[stats.Zero] != 50:
		t.Errorf("s.Verdicts[stats.Zero] = %v, want 50", s.Verdicts[stats.Zero])
	case s.Calls != 120:
		t.Errorf("s.Calls = %v, want 120", s.Calls)
	case s.Containers != 1:
		t.Errorf("s.Containers = %v, want 1", s.Containers)
	case s.Ratio.Median > 1.01:
		t.Errorf("s.Ratio.Median = %v, want at most 1.01", s.Ratio.Median)
	case s.Ratio.Min != 0:
		t.Errorf("s.Ratio.Min = %v, want 0; got %+v", s.Ratio.Min, s)
	}
	if perMinute := s.PerMinute[stats.Zero]; perMinute < 49 || perMinute > 52 {
		t.Errorf("%v zeros a minute", perMinute)
	}
}

// The number per minute of a watch of half a minute is as accurate as that of a longer one.
func TestARateOfAShortWatch(t *testing.T) {
	for _, n := range []int{1, 16, 31, 121} {
		follower, tally := stats.NewFollower(stats.DefaultTolerance), stats.NewTally()
		for _, r := range readings(n, 0, func(int) *uint64 { return nil }) {
			tally.Add(r, follower.Add(r))
		}
		got, ok := tally.Summaries()[0].PerMinute[stats.Missing]
		if ok != (n > 1) {
			t.Errorf("%d samples a second apart, the first not judged: there is a rate: %t", n, ok)
		}
		if ok && (got < 59 || got > 61) {
			t.Errorf("%d samples a second apart, the first not judged: %v a minute, want 60", n, got)
		}
	}
}

func TestAFollowerForgets(t *testing.T) {
	follower := stats.NewFollower(stats.DefaultTolerance)
	var rows []stats.Row
	for i := range 1000 {
		at := epoch().Add(time.Duration(i) * time.Second)
		r := stats.Reading{Source: stats.CRI, Received: at, Samples: []stats.Sample{
			{Container: stats.Container{ID: "stays", Pod: "a"}, Taken: at, Counter: stats.Value(uint64(i) * 5e8),
				Reported: stats.Value(5e8)},
			{Container: stats.Container{ID: fmt.Sprint(i), Pod: "b"}, Taken: at, Counter: stats.Value(1),
				Reported: stats.Value(0)},
		}}
		rows = follower.Add(r)
	}
	switch {
	case rows[0].Computed == nil:
		t.Error("rows[0].Computed is nil")
	case *rows[0].Computed != 0.5:
		t.Errorf("*rows[0].Computed = %v, want 0.5", *rows[0].Computed)
	case len(rows[0].Faults()) != 0:
		t.Errorf("len(rows[0].Faults()) is wrong; row %+v", rows[0])
	}
	if kept := follower.Kept(); kept > 200 {
		t.Errorf("%d series are kept of 1001", kept)
	}
}

func TestUnchangedTimestampIsStale(t *testing.T) {
	follower := stats.NewFollower(stats.DefaultTolerance)
	var rows []stats.Row
	for i := range 60 {
		at := epoch().Add(time.Duration(i) * time.Second)
		rows = follower.Add(stats.Reading{Source: stats.Summary, Received: at, Samples: []stats.Sample{
			{Container: stats.Container{Pod: "a"}, Taken: at, Counter: stats.Value(uint64(i) * 5e8),
				Reported: stats.Value(5e8)},
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

// A watch of a full node may run for hours during other work, so the cost of a sample must
// not grow with the length of its series, whatever the samples report.
func TestSampleCostsAConstantAmount(t *testing.T) {
	const pods = 200
	follower, tally, second := stats.NewFollower(stats.DefaultTolerance), stats.NewTally(), 0
	containers := make([]stats.Container, pods)
	for i := range containers {
		containers[i] = stats.Container{ID: fmt.Sprint("id", i), Namespace: "default", Pod: fmt.Sprint("pod", i),
			Name: "c"}
	}
	samples, reported := make([]stats.Sample, pods), stats.Value(2e8)
	answer := func() {
		second++
		at, counter := epoch().Add(time.Duration(second)*time.Second), stats.Value(uint64(second)*2e8)
		for i, c := range containers {
			samples[i] = stats.Sample{Container: c, Taken: at, Counter: counter, Reported: reported}
		}
		r := stats.Reading{Source: stats.CRI, Received: at, Cores: 4, Samples: samples}
		tally.Add(r, follower.Add(r))
	}
	for range 100 {
		answer()
	}
	// The container's path, for the tally, and occasionally a longer slice for a series.
	if each := testing.AllocsPerRun(100, answer) / pods; each > 5 {
		t.Errorf("a sample takes %.1f allocations", each)
	}
}

// The sums of a long watch take no more memory than those of a short one, and stay correct.
func TestALongWatch(t *testing.T) {
	follower, tally := stats.NewFollower(stats.DefaultTolerance), stats.NewTally()
	const n = 200_000
	for i := range n {
		at := epoch().Add(time.Duration(i) * time.Second)
		r := stats.Reading{Source: stats.CRI, Received: at, Latency: time.Duration(i%100+1) * time.Millisecond,
			Samples: nil}
		tally.Add(r, follower.Add(r))
	}
	got := tally.Summaries()[0].LatencySeconds
	switch {
	case got.Count != n:
		t.Errorf("got.Count = %v, want %v", got.Count, n)
	case got.Min != 0.001:
		t.Errorf("got.Min = %v, want 0.001", got.Min)
	case got.Max != 0.1:
		t.Errorf("got.Max = %v, want 0.1", got.Max)
	case got.Median < 0.045:
		t.Errorf("got.Median = %v, want at least 0.045", got.Median)
	case got.Median > 0.055:
		t.Errorf("got.Median = %v, want at most 0.055; %+v", got.Median, got)
	}
}

func TestCountsAreInTheOrderOfTheRules(t *testing.T) {
	all := stats.Verdicts()
	if got, want := stats.Counts(map[stats.Verdict]int{all[1]: 3, all[0]: 12, all[2]: 0}, "%d"),
		string(all[0])+" 12, "+string(all[1])+" 3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := stats.Counts(map[stats.Verdict]float64{all[0]: 0.25}, "%.1f"); got != string(all[0])+" 0.2" {
		t.Error(got)
	}
	if got := stats.Counts(map[stats.Verdict]int{}, "%d"); got != "none" {
		t.Error(got)
	}
}
