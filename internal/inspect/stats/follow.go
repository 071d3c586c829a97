package stats

import (
	"slices"
	"time"
)

// Row is a sample of a series, with the rate computed from the series and the verdicts on the
// sample.
type Row struct {
	Key      Key
	Point    Point
	Limit    float64
	Computed *float64 // the computed rate in cores; nil if the series gives no rate
	Age      time.Duration
	Verdicts []Verdict
	// Checked has the rules that could judge the sample. For these rules, the series is long
	// enough and has the numbers that the rules compare.
	Checked Checked
}

// Difference returns the relative difference of the reported rate from the computed rate:
// 0.1 if the reported rate is 10 % higher. It returns false if a rate is missing, or if the
// computed rate is 0.
func (r Row) Difference() (float64, bool) {
	if r.Point.Reported == nil || r.Computed == nil || *r.Computed <= 0 {
		return 0, false
	}
	return Cores(*r.Point.Reported)/(*r.Computed) - 1, true
}

// Faults returns the verdicts that mark wrong numbers. It leaves out the verdicts of notes
// (see Rule.Note).
func (r Row) Faults() []Verdict {
	var faults []Verdict
	for _, v := range r.Verdicts {
		if rule, ok := RuleOf(v); ok && !rule.Note {
			faults = append(faults, v)
		}
	}
	return faults
}

// mostSeries is the number of series above which only the series of the latest reading are kept. No
// node has so many containers, but a hostile node can name new containers in each of its answers.
const mostSeries = 1 << 16

// Follower keeps as much of each series as the rules need to judge the next sample. Only one
// goroutine at a time may use it.
type Follower struct {
	tolerance float64
	rules     []Rule // created only once, since there are many samples to judge
	tracks    map[Key]*track
	latest    map[peerKey]*track // for each container, the latest series of caller 0
	groups    map[groupKey]*group
}

// DefaultTolerance is the default tolerance: the largest relative difference between two rates that
// the rules accept.
const DefaultTolerance = 0.2

// NewFollower returns a Follower without series.
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

// group is the state that the series of one source and caller share.
type group struct {
	moved       time.Time // when a timestamp of any container last moved
	by          Container // the container whose timestamp last moved
	movedOthers time.Time // when a timestamp of a container other than group.by last moved
	swept       time.Time
}

// Add adds the samples of a reading to their series, and returns a judged row for each sample. It
// returns no rows for a reading with an error. The readings of one source and caller must be added
// in the order in which swdt received them.
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
	switch {
	case len(f.tracks) > mostSeries:
		f.forget(r.Received)
	case r.Received.Sub(g.swept) > History:
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
	// Keep one point that is older than History, since the rules need a series that is at
	// least as long as History.
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

// othersMoved returns when a timestamp of a container other than c last moved.
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
		Key: key, Point: t.points[len(t.points)-1], Limit: s.Limit, Verdicts: judge(window, f.rules),
		Checked: checked(window, f.rules),
		Age:     r.Received.Sub(s.Taken),
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
		k.source = "" // no series has an empty source
	}
	return k
}

// forget removes the series without a sample since the given time: their containers are usually
// gone.
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

// Kept returns the number of series that are kept.
func (f *Follower) Kept() int { return len(f.tracks) }
