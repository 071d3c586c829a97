package soak_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/soak"
)

var begin = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

// noise returns the relative error of a value, by the minute.
type noise func(r *rand.Rand, minute int) float64

// noises are forms of noise that numbers of real programs have.
func noises() map[string]noise {
	white := func(r *rand.Rand, size float64) float64 { return size * r.NormFloat64() }
	return map[string]noise{
		"white": func(r *rand.Rand, _ int) float64 { return white(r, 0.03) },
		// a garbage collector: it grows for some minutes and falls back
		"sawtooth": func(r *rand.Rand, minute int) float64 {
			return 0.3*float64(minute%7)/7 + white(r, 0.02)
		},
		// a step up and back, such as pods that start and end
		"steps": func(r *rand.Rand, minute int) float64 {
			return 0.05*float64((minute/11)%2) + white(r, 0.02)
		},
		"outliers": func(r *rand.Rand, _ int) float64 {
			if r.IntN(10) == 0 {
				return 5 * r.Float64()
			}
			return white(r, 0.02)
		},
		// each value keeps half of the deviation of the one before
		"slow": slow(),
	}
}

func slow() noise {
	deviation := 0.0
	return func(r *rand.Rand, minute int) float64 {
		if minute == 0 {
			deviation = 0
		}
		deviation = 0.5*deviation + 0.02*r.NormFloat64()
		return deviation
	}
}

// sampled returns the slope of hours of samples, one a minute, of a number that changes by percent of its first value in an
// hour. With restarts, the program starts again at these minutes, with the first value.
func sampled(seed uint64, hours int, percent float64, add noise, restarts ...int) soak.Row {
	r := rand.New(rand.NewPCG(seed, 1))
	s := soak.NewSeries()
	instance, began := 0, 0
	for minute := range hours * 60 {
		for _, at := range restarts {
			if minute == at {
				instance, began = instance+1, minute
			}
		}
		grown := 1 + percent/100*float64(minute-began)/60
		s.Add(soak.Key{Node: "win", Of: "kubelet", Measure: stats.Handles}, fmt.Sprint(instance),
			begin.Add(time.Duration(minute)*time.Minute), 1000*(grown+add(r, minute)))
	}
	return s.Report().Rows[0]
}

const seeds = 300

// In six hours of samples a slope of 1 % an hour is found in at least 97 of 100 runs, whatever the form of the noise, and no
// run calls it steady. Of numbers that only have noise, at most 1 of 100 is called growing.
func TestAPlantedSlopeIsFound(t *testing.T) {
	for name, add := range noises() {
		found, steady, invented := 0, 0, 0
		for seed := range uint64(seeds) {
			planted := sampled(seed, 6, 1, add)
			if planted.Verdict == soak.Growing {
				found++
			}
			if planted.Verdict == soak.Steady {
				steady++
			}
			if v := sampled(seed, 6, 0, add).Verdict; v == soak.Growing || v == soak.Falling {
				invented++
			}
		}
		t.Logf("%s: found %d, missed as steady %d, invented %d of %d", name, found, steady, invented, seeds)
		if found < seeds*97/100 || steady > 0 || invented > seeds/100 {
			t.Errorf("%s: found %d, missed as steady %d, invented %d of %d", name, found, steady, invented, seeds)
		}
	}
}

// A program that was restarted twice leaks as before: its values are compared with those of the same process. The slope of 1 %
// an hour is found in at least 90 of 100 runs, since each process has few points.
func TestRestarts(t *testing.T) {
	found, invented := 0, 0
	for seed := range uint64(seeds) {
		white := func(r *rand.Rand, _ int) float64 { return 0.01 * r.NormFloat64() }
		if sampled(seed, 6, 1, white, 100, 240).Verdict == soak.Growing {
			found++
		}
		// each process is smaller than the one before: no leak, and no fall
		if v := sampled(seed, 6, 0, func(r *rand.Rand, minute int) float64 {
			return white(r, minute) - 0.3*float64(minute/120)
		}, 120, 240).Verdict; v == soak.Growing || v == soak.Falling {
			invented++
		}
	}
	t.Logf("found %d, invented %d of %d", found, invented, seeds)
	if found < seeds*90/100 || invented > seeds/100 {
		t.Errorf("found %d, invented %d of %d", found, invented, seeds)
	}
}

// One step is no slope: a cache was filled, or a pod was added.
func TestOneStepIsNoGrowth(t *testing.T) {
	for seed := range uint64(seeds) {
		at := 60 + int(seed)%240
		row := sampled(seed, 6, 0, func(r *rand.Rand, minute int) float64 {
			step := 0.0
			if minute >= at {
				step = 0.2
			}
			return step + 0.01*r.NormFloat64()
		})
		if row.Verdict == soak.Growing {
			t.Errorf("a step at minute %d: %+v", at, row)
		}
	}
}

func TestTooFewSamples(t *testing.T) {
	s := soak.NewSeries()
	key := soak.Key{Node: "win", Of: "hns", Measure: stats.HNSEndpoints}
	for minute := range 40 {
		s.Add(key, "", begin.Add(time.Duration(minute)*time.Minute), float64(minute))
	}
	if row := s.Report().Rows[0]; row.Verdict != soak.TooFew {
		t.Errorf("%+v", row)
	}
	if rows := soak.NewSeries().Report().Rows; len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}

// Shims without a pod begin at 0, and a constant number has no slope.
func TestCountsFromZero(t *testing.T) {
	s := soak.NewSeries()
	leak := soak.Key{Node: "win", Of: "containerd", Measure: stats.ShimsUnowned}
	still := soak.Key{Node: "win", Of: "node", Measure: stats.Pods}
	for minute := range 6 * 60 {
		at := begin.Add(time.Duration(minute) * time.Minute)
		s.Add(leak, "", at, float64(minute/20))
		s.Add(still, "", at, 0)
	}
	rows := s.Report().Rows
	if rows[0].Key != leak || rows[0].Verdict != soak.Growing || math.Abs(rows[0].PerHour-3) > 0.3 {
		t.Errorf("%+v", rows[0])
	}
	if rows[1].Verdict != soak.Steady || rows[1].PerHour != 0 {
		t.Errorf("%+v", rows[1])
	}
}

// A hostile node names new programs in each look: the series are bounded.
func TestSeriesAreBounded(t *testing.T) {
	s := soak.NewSeries()
	for i := range 1 << 15 {
		s.AddLevels(stats.Levels{Node: "win", Taken: begin, Levels: []stats.Level{{Of: fmt.Sprint(i), Measure: stats.Handles}}})
	}
	if r := s.Report(); len(r.Rows) > 1<<14 || !r.Dropped {
		t.Errorf("%d rows, dropped: %t", len(r.Rows), r.Dropped)
	}
}

// A recording may be edited or come from a stranger: its times are in any order, and its work is bounded.
func TestTimesInAnyOrder(t *testing.T) {
	far := time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, times := range map[string][]time.Time{
		"backwards":      {begin.Add(5 * time.Hour), begin.Add(2 * time.Hour), begin},
		"far":            {begin, far, begin.Add(time.Minute)},
		"far, backwards": {far, begin, far.Add(time.Minute)},
	} {
		s := soak.NewSeries()
		for i, at := range times {
			s.Add(soak.Key{Node: "win", Of: "kubelet", Measure: stats.Handles}, "", at, float64(i))
		}
		row := s.Report().Rows[0]
		first, last := slices.MinFunc(times, time.Time.Compare), slices.MaxFunc(times, time.Time.Compare)
		if row.Hours != last.Sub(first).Hours() || row.First != float64(slices.Index(times, first)) ||
			row.Last != float64(slices.Index(times, last)) || row.Verdict != soak.TooFew {
			t.Errorf("%s: %+v", name, row)
		}
	}
	mixed := soak.NewSeries()
	for minute := range 6 * 60 {
		at := (minute*7 + 3) % 360 // a permutation
		mixed.Add(soak.Key{Node: "win", Of: "kubelet", Measure: stats.Handles}, "", begin.Add(time.Duration(at)*time.Minute), 1000+float64(at))
	}
	if row := mixed.Report().Rows[0]; row.Verdict != soak.Growing || math.Abs(row.PerHour-60) > 1 {
		t.Errorf("%+v", row)
	}
}

// A node that names another instance in each look does not grow the memory of the watch.
func TestInstancesAreBounded(t *testing.T) {
	s := soak.NewSeries()
	key := soak.Key{Node: "win", Of: "kubelet", Measure: stats.Handles}
	for i := range 100_000 {
		s.Add(key, fmt.Sprint(i), begin.Add(time.Duration(i)*time.Second), 1)
	}
	r := s.Report()
	if row := r.Rows[0]; row.Starts > 1000 || !r.Dropped {
		t.Errorf("%d starts, dropped: %t", row.Starts, r.Dropped)
	}
}

// A disk that fills is a finding as something that grows is: its free bytes fall.
func TestAFillingDiskCountsAsGrowing(t *testing.T) {
	for measure, want := range map[string]bool{stats.DiskFree: true, stats.Pods: false} {
		s := soak.NewSeries()
		for minute := range 6 * 60 {
			s.AddLevels(stats.Levels{Node: "win", Taken: begin.Add(time.Duration(minute) * time.Minute),
				Levels: []stats.Level{{Of: "node", Measure: measure, Value: 50e9 - 100e6*float64(minute)}}})
		}
		if r := s.Report(); r.Grows() != want || r.Rows[0].Verdict != soak.Falling {
			t.Errorf("%+v", r.Rows)
		}
	}
}
