package stats_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

func epoch() time.Time { return time.Date(2024, 1, 22, 19, 48, 0, 0, time.UTC) }

const tick = 15625 * time.Microsecond

// series returns n samples, a second apart, of a container that uses this number of cores.
// Report returns the reported rate of sample i.
func series(n int, cores float64, report func(i int) *uint64) []stats.Point {
	var points []stats.Point
	for i := range n {
		at := epoch().Add(time.Duration(i) * time.Second)
		counter := uint64(84401234375000 + float64(i)*cores*1e9)
		points = append(points, stats.Point{Taken: at, Received: at.Add(3 * time.Millisecond), Counter: &counter,
			Reported: report(i)})
	}
	return points
}

func always(cores float64) func(int) *uint64 {
	return func(int) *uint64 { return stats.Value(uint64(cores * 1e9)) }
}

// except returns a function that reports the true rate, except for the last of n samples.
func except(n int, cores float64, last *uint64) func(int) *uint64 {
	return func(i int) *uint64 {
		if i == n-1 {
			return last
		}
		return stats.Value(uint64(cores * 1e9))
	}
}

func TestVerdicts(t *testing.T) {
	const n = 30
	back := series(n, 0.503, always(0.503))
	*back[n-1].Counter = *back[n-2].Counter - 1e9
	leap := series(n, 0.503, always(0.503))
	*leap[n-1].Counter = *leap[n-2].Counter + uint64(5*time.Second)
	busy := series(n, 0.503, always(0.503))
	*busy[n-1].Counter = *busy[n-2].Counter + uint64(4*time.Second)
	again := series(n, 0.503, always(0.503))
	*again[n-1].Counter = uint64(300 * time.Millisecond)
	frozen := series(60, 0, always(0))
	for i := range frozen[20:] {
		frozen[20+i].Taken = frozen[20].Taken
	}
	quantised := series(n, 0.503, always(0.503))
	for i, p := range quantised {
		*p.Counter = uint64(i*32) * uint64(tick)
	}
	for _, test := range []struct {
		name   string
		window stats.Window
		want   []stats.Verdict
	}{
		{"steady", stats.Window{Points: series(n, 0.503, always(0.503))}, nil},
		{"idle", stats.Window{Points: series(n, 0, always(0))}, nil},
		{"the 0 of containerd 1.7.12", stats.Window{Points: series(n, 0.503, except(n, 0.503, stats.Value(0)))},
			[]stats.Verdict{stats.Zero}},
		{"a 0 too early to tell", stats.Window{Points: series(5, 0.5, except(5, 0.5, stats.Value(0)))}, nil},
		{"nothing from containerd 1.6.27", stats.Window{Points: series(n, 0.503, func(int) *uint64 { return nil })},
			[]stats.Verdict{stats.Missing}},
		{"nothing in the first sample", stats.Window{Points: series(1, 0.5, func(int) *uint64 { return nil })}, nil},
		{"the 1.5 cores of the kubelet's summary", stats.Window{
			Points: series(n, 0.503, except(n, 0.503, stats.Value(1506845973))), Limit: 0.5,
		}, []stats.Verdict{stats.Above, stats.Wild}},
		{"more than the node has", stats.Window{Points: series(5, 0.5, except(5, 0.5, stats.Value(4e9))),
			NodeCores: 2}, []stats.Verdict{stats.Above}},
		{"a limit within the tolerance", stats.Window{Points: series(n, 0.55, always(0.55)), Limit: 0.5,
			Tolerance: 0.2}, nil},
		{"backwards", stats.Window{Points: back, NodeCores: 4}, []stats.Verdict{stats.Backwards}},
		{"5 s in a second of 4 cores", stats.Window{Points: leap, NodeCores: 4}, []stats.Verdict{stats.Jumped}},
		{"all of 4 cores", stats.Window{Points: busy, NodeCores: 4}, nil},
		{"5 s in a second of unknown cores", stats.Window{Points: leap}, nil},
		{"begun again", stats.Window{Points: again, NodeCores: 4}, nil},
		{"frozen while others move", stats.Window{Points: frozen, OthersMoved: frozen[59].Received},
			[]stats.Verdict{stats.Stale}},
		{"frozen with all others", stats.Window{Points: frozen}, nil},
		{"a rate without a counter that moves", stats.Window{Points: series(60, 0, always(0.5)), Limit: 1},
			[]stats.Verdict{stats.Wild, stats.Stale}},
		{"the runtime's rate is not the kubelet's", stats.Window{
			Points: series(n, 0.503, except(n, 0.503, stats.Value(8e8))), Peer: series(n, 0.503, always(0.503)),
			Tolerance: 0.2,
		}, []stats.Verdict{stats.Disagree}},
		{"the kubelet sees another load", stats.Window{Points: series(n, 0.503, always(0.503)),
			Peer: series(n, 0.9, always(0.9)), Tolerance: 0.2}, nil},
		{"ticks", stats.Window{Points: quantised}, []stats.Verdict{stats.Quantised}},
		{"the node's own process has no rate", stats.Window{Source: stats.Node,
			Points: series(n, 0.503, func(int) *uint64 { return nil })}, nil},
		{"no points", stats.Window{}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := stats.Judge(test.window); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestComputedIsOverTenSecondsAtLeast(t *testing.T) {
	points := series(30, 0.503, always(0.7))
	switch got, ok := stats.Computed(points); {
	case !ok:
		t.Error("ok = false, want true")
	case got < 0.5029:
		t.Errorf("got = %v, want at least 0.5029", got)
	case got > 0.5031:
		t.Errorf("got = %v, want at most 0.5031; computed %v, %v", got, got, ok)
	}
	if got, ok := stats.Computed(points[:10]); ok {
		t.Errorf("computed %v of 9 s", got)
	}
	*points[25].Counter = 1
	if got, ok := stats.Computed(points); ok {
		t.Errorf("computed %v across a counter that went back", got)
	}
}

// honest returns the series of a runtime that reports the rate since the previous request,
// as containerd does if there is no other caller. The load of its container varies, and the
// container may restart.
func honest(t *rapid.T) (points []stats.Point, cores float64) {
	cores = float64(rapid.IntRange(1, 16).Draw(t, "cores"))
	interval := time.Duration(rapid.IntRange(200, 15_000).Draw(t, "interval ms")) * time.Millisecond
	fine := rapid.Bool().Draw(t, "a counter finer than ticks")
	at, used := epoch(), time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "used"))
	load := 0.0
	for range rapid.IntRange(1, 120).Draw(t, "samples") {
		switch rapid.IntRange(0, 9).Draw(t, "event") {
		case 0:
			load = rapid.Float64Range(0, 1).Draw(t, "load") * cores
		case 1:
			load = 0
		case 2:
			if rapid.IntRange(0, 5).Draw(t, "again") == 0 {
				used = 0
			}
		}
		at = at.Add(interval)
		used += time.Duration(load * float64(interval))
		counter := uint64(used)
		if !fine {
			counter -= counter % uint64(tick)
		}
		p := stats.Point{Taken: at, Received: at.Add(time.Millisecond), Counter: &counter}
		p.Reported = stats.Value(0)
		if len(points) > 0 && *points[len(points)-1].Counter <= counter {
			p.Reported = stats.Value(uint64(float64(counter-*points[len(points)-1].Counter) / interval.Seconds()))
		}
		points = append(points, p)
	}
	return points, cores
}

func TestNoFalseAlarm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points, cores := honest(t)
		tolerance := rapid.Float64Range(0.05, 0.5).Draw(t, "tolerance")
		for i := range points {
			w := stats.Window{
				Points: points[:i+1], NodeCores: cores, Limit: cores, Tolerance: tolerance,
				OthersMoved: points[i].Received, Peer: points[:i+1],
			}
			for _, v := range stats.Judge(w) {
				if rule, _ := stats.RuleOf(v); !rule.Note {
					t.Fatalf("sample %d is %s", i, v)
				}
			}
		}
	})
}

// If another caller always asks just before, every answer is 0. The rule finds all of them
// once the series is ten seconds long.
func TestEveryZeroOfABusyContainerIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		load := rapid.Float64Range(0.05, 4).Draw(t, "load")
		points := series(40, load, always(0))
		for i := range points {
			verdicts := stats.Judge(stats.Window{Points: points[:i+1]})
			if got, want := slices.Contains(verdicts, stats.Zero), i >= 10; got != want {
				t.Fatalf("sample %d: zero is %v, want %v", i, got, want)
			}
		}
	})
}

// A rule counts as checked only if the window has the numbers that it compares.
func TestCheckedNeedsTheWindow(t *testing.T) {
	for _, test := range []struct {
		seconds int
		report  func(int) *uint64
		want    []stats.Verdict
	}{
		{1, always(0.5), []stats.Verdict{stats.Above}},
		{8, always(0.5), []stats.Verdict{stats.Missing, stats.Backwards, stats.Above, stats.Jumped}},
		{12, always(0.5), []stats.Verdict{stats.Zero, stats.Missing, stats.Backwards, stats.Above,
			stats.Jumped, stats.Quantised}},
		{22, always(0.5), []stats.Verdict{stats.Zero, stats.Missing, stats.Backwards, stats.Above, stats.Wild, stats.Jumped,
			stats.Quantised}},
		{32, always(0.5), []stats.Verdict{stats.Zero, stats.Missing, stats.Backwards, stats.Above, stats.Wild, stats.Jumped,
			stats.Stale, stats.Quantised}},
		{32, func(int) *uint64 { return nil }, []stats.Verdict{stats.Missing, stats.Backwards, stats.Jumped, stats.Stale,
			stats.Quantised}},
	} {
		follower := stats.NewFollower(stats.DefaultTolerance)
		var rows []stats.Row
		for _, p := range series(test.seconds, 0.5, test.report) {
			sample := stats.Sample{Container: stats.Container{Pod: "p"}, Taken: p.Taken, Reported: p.Reported,
				Counter: p.Counter}
			rows = follower.Add(stats.Reading{Source: stats.CRI, Received: p.Received, Cores: 4,
				Samples: []stats.Sample{sample}})
		}
		if got := rows[0].Checked.Verdicts(); !slices.Equal(got, test.want) {
			t.Errorf("%d samples: %v, want %v", test.seconds, got, test.want)
		}
	}
}
