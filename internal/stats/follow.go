package stats

import (
	"slices"
	"time"
)

// Row is a sample with what became of it.
type Row struct {
	Key      Key
	Point    Point
	Limit    float64
	Computed *float64 // cores; nil where the series is too young
	Age      time.Duration
	Verdicts []Verdict
	// Checked are the verdicts that the sample could have got: the series is long
	// enough and has the numbers that their rules look at.
	Checked Checked
}

// Difference of the reported to the computed rate, 0.1 for 10 % more.
func (r Row) Difference() (float64, bool) {
	if r.Point.Reported == nil || r.Computed == nil || *r.Computed <= 0 {
		return 0, false
	}
	return Cores(*r.Point.Reported)/(*r.Computed) - 1, true
}

// Faults are the verdicts that are no notes.
func (r Row) Faults() []Verdict {
	var faults []Verdict
	for _, v := range r.Verdicts {
		if rule, ok := RuleOf(v); ok && !rule.Note {
			faults = append(faults, v)
		}
	}
	return faults
}

// Follower keeps as much of each series as it takes to judge the next sample. It
// is for one goroutine.
type Follower struct {
	tolerance float64
	rules     []Rule // made once: there are many samples
	tracks    map[Key]*track
	latest    map[peerKey]*track // by the one that watches
	groups    map[groupKey]*group
}

// DefaultTolerance is how far a rate may be off.
const DefaultTolerance = 0.2

// NewFollower begins without any series.
func NewFollower(tolerance float64) *Follower {
	return &Follower{
		tolerance: tolerance, rules: Rules(),
		tracks: map[Key]*track{}, latest: map[peerKey]*track{}, groups: map[groupKey]*group{},
	}
}

type track struct {
	points []Point
	peer   peerKey
	seen   time.Time
}

type peerKey struct {
	node, path string
	source     Source
}

type groupKey struct {
	node   string
	source Source
	caller int
}

// group are the series of one caller's answers.
type group struct {
	moved       time.Time // when a timestamp last moved
	by          Container
	movedOthers time.Time // and when one of another container than by
	swept       time.Time
}

// Add takes a reading in and judges its samples. Those of one source and caller
// must come in the order in which they were received.
func (f *Follower) Add(r Reading) []Row {
	if r.Err != "" {
		return nil
	}
	g := f.group(groupKey{r.Node, r.Source, r.Caller})
	for _, s := range r.Samples {
		f.append(r, s, g)
	}
	rows := make([]Row, 0, len(r.Samples))
	for _, s := range r.Samples {
		rows = append(rows, f.judge(r, s, g))
	}
	if r.Received.Sub(g.swept) > History {
		g.swept = r.Received
		f.forget(r.Received.Add(-2 * History))
	}
	return rows
}

func (f *Follower) group(k groupKey) *group {
	if f.groups[k] == nil {
		f.groups[k] = &group{}
	}
	return f.groups[k]
}

func (f *Follower) append(r Reading, s Sample, g *group) {
	key := Key{s.Container, r.Source, r.Caller}
	t := f.tracks[key]
	if t == nil {
		t = &track{peer: peerKey{r.Node, s.Container.Path(), r.Source}}
		f.tracks[key] = t
	} else if s.Taken.After(t.points[len(t.points)-1].Taken) {
		g.move(s.Container, r.Received)
	}
	t.seen = r.Received
	t.points = append(t.points, Point{
		Taken: s.Taken, Received: r.Received, Reported: s.Reported, Counter: s.Counter, Memory: s.Memory,
	})
	// One point beyond the history: what is judged goes back that far at least.
	keep := 0
	for keep+1 < len(t.points) && r.Received.Sub(t.points[keep+1].Received) > History {
		keep++
	}
	t.points = slices.Delete(t.points, 0, keep)
	if r.Caller == 0 {
		f.latest[t.peer] = t
	}
}

func (g *group) move(c Container, at time.Time) {
	if c != g.by {
		g.movedOthers, g.by = g.moved, c
	}
	g.moved = at
}

// othersMoved is when a timestamp of another container than c last moved.
func (g *group) othersMoved(c Container) time.Time {
	if c == g.by {
		return g.movedOthers
	}
	return g.moved
}

func (f *Follower) judge(r Reading, s Sample, g *group) Row {
	key := Key{s.Container, r.Source, r.Caller}
	t := f.tracks[key]
	window := Window{
		Source: r.Source, Points: t.points, Limit: s.Limit, NodeCores: r.Cores, Tolerance: f.tolerance,
		OthersMoved: g.othersMoved(s.Container),
	}
	if peer := f.latest[t.peer.other()]; peer != nil {
		window.Peer = peer.points
	}
	row := Row{
		Key: key, Point: t.points[len(t.points)-1], Limit: s.Limit, Verdicts: judge(window, f.rules), Checked: checked(window, f.rules),
		Age: r.Received.Sub(s.Taken),
	}
	if cores, ok := Computed(t.points); ok {
		row.Computed = &cores
	}
	return row
}

func (k peerKey) other() peerKey {
	switch k.source {
	case CRI:
		k.source = Summary
	case Summary:
		k.source = CRI
	default:
		k.source = "" // nobody's
	}
	return k
}

// forget what has not been seen since: containers that are gone.
func (f *Follower) forget(since time.Time) {
	for key, t := range f.tracks {
		if t.seen.Before(since) {
			delete(f.tracks, key)
			if f.latest[t.peer] == t {
				delete(f.latest, t.peer)
			}
		}
	}
}

// Kept is how many series are kept.
func (f *Follower) Kept() int { return len(f.tracks) }
