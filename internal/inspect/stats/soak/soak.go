// Package soak finds what slowly grows on a node: handles, memory, objects, disk. It fits a slope to each number of a
// recording, and says how sure the slope is. It uses neither clocks nor connections.
//
//   - soak.go: the numbers, and their reduction to one a minute
//   - slope.go: the slope of a series, with its interval and its verdict
//   - report.go: the report, and its text
package soak

import (
	"cmp"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

// Key identifies a series: a measure of a program, a container or the node itself.
type Key struct {
	Node    string `json:"node"`
	Of      string `json:"of"`      // kubelet, or NAMESPACE/POD/CONTAINER
	Measure string `json:"measure"` // handles
}

// bucket is the time whose values become one point. A watch of hours asks every second.
const bucket = time.Minute

// mostSeries is the number of series that are kept: a hostile node can name new containers in each of its answers.
const mostSeries = 1 << 14

// mostSegments is the number of segments of a series that are kept, the latest ones: a program may be restarted, or a hostile
// node name another instance, in each look.
const mostSegments = 256

// point is a value of a minute; see low.
type point struct {
	at    time.Time
	value float64
}

// segment has the points between two restarts of a program.
type segment struct {
	instance string
	points   []point
	pending  []float64 // the values of the minute that is not over
	minute   time.Time
}

// Series collects the numbers of a recording. Only one goroutine at a time may use it.
type Series struct {
	all     map[Key][]*segment
	dropped bool
}

// NewSeries returns Series without numbers.
func NewSeries() *Series { return &Series{all: map[Key][]*segment{}} }

// Add adds a value. instance changes when a program was restarted: the values before and after are not compared with each
// other. The values of one minute become one point only if they are added one after the other.
func (s *Series) Add(k Key, instance string, at time.Time, value float64) {
	segments := s.all[k]
	if segments == nil && len(s.all) >= mostSeries {
		s.dropped = true
		return
	}
	if len(segments) == 0 || segments[len(segments)-1].instance != instance {
		if len(segments) == mostSegments {
			s.dropped, segments = true, slices.Delete(segments, 0, 1)
		}
		segments = append(segments, &segment{instance: instance})
		s.all[k] = segments
	}
	segments[len(segments)-1].add(at, value)
}

func (s *segment) add(at time.Time, value float64) {
	minute := at.Truncate(bucket)
	if !minute.Equal(s.minute) {
		s.flush()
		s.minute = minute
	}
	const most = 1024 // values of one minute
	if len(s.pending) < most {
		s.pending = append(s.pending, value)
	}
}

// flush ends the minute.
func (s *segment) flush() {
	if len(s.pending) > 0 {
		s.points = append(s.points, point{at: s.minute, value: low(s.pending)})
		s.pending = s.pending[:0]
	}
}

// finish ends the last minute, and sorts the points by time.
func (s *segment) finish() {
	s.flush()
	slices.SortStableFunc(s.points, func(a, b point) int { return a.at.Compare(b.at) })
}

// low returns the mean of the lower half of values, which it sorts. Memory of a program with a garbage collector is a sawtooth,
// whose lower end grows if the program leaks; and outliers are mostly high.
func low(values []float64) float64 {
	slices.Sort(values)
	n := (len(values) + 1) / 2
	sum := 0.0
	for _, v := range values[:n] {
		sum += v
	}
	return sum / float64(n)
}

// AddReading adds the memory of containers, as a source of statistics reports it.
func (s *Series) AddReading(r stats.Reading) {
	if r.Caller != 0 || r.Err != "" {
		return
	}
	for _, sample := range r.Samples {
		if sample.Memory != nil {
			s.Add(Key{Node: r.Node, Of: sample.Container.Path(), Measure: "working set (" + string(r.Source) + ")"},
				sample.Container.ID, r.Received, float64(*sample.Memory))
		}
	}
}

// AddLevels adds the numbers of a look at a node.
func (s *Series) AddLevels(l stats.Levels) {
	for _, level := range l.Levels {
		s.Add(Key{Node: l.Node, Of: level.Of, Measure: level.Measure}, level.Instance, l.Taken, level.Value)
	}
}

// keys returns the keys in the order in which they are printed.
func (s *Series) keys() []Key {
	var all []Key
	for k := range s.all {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Of, b.Of), cmp.Compare(a.Measure, b.Measure))
	})
	return all
}
