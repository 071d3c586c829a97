package stats

import (
	"time"
)

const (
	// staleAfter is the time after which an unchanged sample is stale. It is longer than the
	// lifetime of kubelet's caches.
	staleAfter = 30 * time.Second
	// lag is the maximum age of a rate from a cache: kubelet computes the rate of the last
	// 10 s every 10 s.
	lag = 20 * time.Second
	// brief is the minimum time between two samples for a meaningful rate.
	brief = 100 * time.Millisecond
	// quanta is the number of steps of the counter that must all be multiples of Tick for the
	// verdict Quantised. It is large enough to exclude a coincidence.
	quanta = 8
	// History is the length of a series that must be kept to judge the series' last sample.
	History = staleAfter + RateWindow
)

// Window is the evidence for the verdicts on a sample: the sample's series up to the sample, and
// related series.
type Window struct {
	Source    Source
	Points    []Point // in the order of the requests; the last point is judged
	Limit     float64 // the container's CPU limit in cores; 0: none is known
	NodeCores float64 // 0: not known
	Tolerance float64 // 0.2 is 20 %

	// OthersMoved is the time (by this machine's clock) at which the timestamp of another container
	// last moved, in the answers of the same source to the same caller.
	OthersMoved time.Time
	// Peer is the series of the same container from the other source, up to now. If Source is
	// CRI, the other source is Summary, and the reverse.
	Peer []Point
}

// Judge returns the verdicts on the window's last point, in the order of Rules.
func Judge(w Window) []Verdict { return judge(w, Rules()) }

func judge(w Window, rules []Rule) []Verdict {
	if len(w.Points) == 0 || w.Source == Node { // Node reports no rates to judge
		return nil
	}
	var verdicts []Verdict
	for i := range rules {
		if rule := &rules[i]; rule.holds(w) {
			verdicts = append(verdicts, rule.Verdict)
		}
	}
	return verdicts
}

// Checked is the set of the rules that could judge a sample, one bit for each rule. A set of bits
// needs little memory, and there are many samples.
type Checked uint16

// checked returns the rules that could judge the window's last point, whatever their verdict.
func checked(w Window, rules []Rule) Checked {
	if len(w.Points) == 0 || w.Source == Node {
		return 0
	}
	var all Checked
	for i := range rules {
		if rules[i].possible(w) {
			all |= 1 << i
		}
	}
	return all
}

// Verdicts returns the verdicts of the rules in the set. The sample could have got each of
// these verdicts.
func (c Checked) Verdicts() []Verdict {
	var all []Verdict
	for i, v := range Verdicts() {
		if c&(1<<i) != 0 {
			all = append(all, v)
		}
	}
	return all
}

func anyStep(step) bool { return true }

func zeroPossible(w Window) bool {
	return w.last().Reported != nil && stepsBack(w.Points, RateWindow, anyStep)
}

func missingPossible(w Window) bool {
	_, ok := w.before()
	return ok && (w.last().Counter != nil || w.last().Reported != nil)
}

func backwardsPossible(w Window) bool {
	before, ok := w.before()
	return ok && before.Counter != nil && w.last().Counter != nil
}

func abovePossible(w Window) bool {
	return w.last().Reported != nil && (w.Limit > 0 || w.NodeCores > 0)
}

func wildPossible(w Window) bool {
	return w.last().Reported != nil && stepsBack(w.Points, lag, anyStep)
}

func stalePossible(w Window) bool {
	return w.last().Received.Sub(w.Points[0].Received) >= staleAfter
}

func disagreePossible(w Window) bool {
	if len(w.Peer) == 0 {
		return false
	}
	mine, theirs := w.last(), w.Peer[len(w.Peer)-1]
	return mine.Reported != nil && theirs.Reported != nil && mine.Received.Sub(theirs.Received) <= 2*time.Second &&
		stepsBack(w.Points, lag, anyStep) && stepsBack(w.Peer, lag, anyStep)
}

func quantisedPossible(w Window) bool {
	steps := 0
	for i := len(w.Points) - 1; i > 0 && steps < quanta; i-- {
		to, from := w.Points[i].Counter, w.Points[i-1].Counter
		if to == nil || from == nil || *to < *from {
			return false
		}
		if *to > *from {
			steps++
		}
	}
	return steps == quanta
}

func (w Window) last() Point { return w.Points[len(w.Points)-1] }

// before returns the point before the last one, and whether there is one.
func (w Window) before() (Point, bool) {
	if len(w.Points) < 2 {
		return Point{}, false
	}
	return w.Points[len(w.Points)-2], true
}

func zero(w Window) bool {
	last := w.last()
	if last.Reported == nil || *last.Reported != 0 {
		return false
	}
	before, ok := w.before()
	if !ok || last.Counter == nil || before.Counter == nil || *last.Counter < *before.Counter+uint64(Tick)+1 {
		return false // the container may have become idle just now
	}
	return stepsBack(w.Points, RateWindow, func(s step) bool { return s.advance > uint64(Tick) })
}

func missing(w Window) bool {
	last := w.last()
	before, ok := w.before()
	if !ok || last.Reported != nil || last.Counter == nil {
		return false
	}
	return before.Counter == nil || *last.Counter >= *before.Counter
}

func backwards(w Window) bool {
	last := w.last()
	before, ok := w.before()
	if !ok || last.Counter == nil || before.Counter == nil || *last.Counter >= *before.Counter {
		return false
	}
	// If the container restarted, the counter cannot exceed the time of all processors since the
	// restart.
	return float64(*last.Counter) > w.most(before, Tick)
}

// most returns the time of all of the node's processors since a point, in nanoseconds. slack is added to the time between
// the points.
func (w Window) most(since Point, slack time.Duration) float64 {
	cores := w.NodeCores
	if cores == 0 {
		cores = manyCores
	}
	last := w.last()
	return float64(max(last.Received.Sub(since.Received), last.Taken.Sub(since.Taken))+slack) * cores
}

// jumped reports whether the counter advanced by more than the node's processors could have used since the previous
// sample. The time between the samples is the longer one of this machine's clock and the node's.
func jumped(w Window) bool {
	last := w.last()
	before, ok := w.before()
	if !ok || last.Counter == nil || before.Counter == nil || *last.Counter <= *before.Counter {
		return false
	}
	return float64(*last.Counter-*before.Counter) > w.most(before, 2*Tick)
}

// ticksASecond returns the number of cores by which n ticks of the counter can raise a rate that is
// measured over one second.
func ticksASecond(n int) float64 { return float64(n) * Tick.Seconds() }

func above(w Window) bool {
	limit := w.Limit
	if limit == 0 {
		limit = w.NodeCores
	}
	last := w.last()
	return limit > 0 && last.Reported != nil && Cores(*last.Reported) > (1+w.Tolerance)*limit+ticksASecond(2)
}

func wild(w Window) bool {
	last := w.last()
	if last.Reported == nil {
		return false
	}
	highest, whole := highestRate(w.Points, lag)
	return whole && Cores(*last.Reported) > 2*highest+ticksASecond(4)
}

// highestRate returns the highest rate, in cores, within the window. It compares the rates of all
// steps and of all pairs of consecutive samples that are at least 100 ms (the constant brief)
// apart. It also reports whether the series covers the whole window.
func highestRate(points []Point, window time.Duration) (highest float64, whole bool) {
	whole = stepsBack(points, window, func(s step) bool {
		highest = max(highest, s.cores())
		return true
	})
	last := points[len(points)-1]
	for i := len(points) - 1; i > 0 && last.Taken.Sub(points[i].Taken) < window; i-- {
		to, from := points[i], points[i-1]
		if to.Counter == nil || from.Counter == nil || *from.Counter > *to.Counter {
			break
		}
		if span := to.Taken.Sub(from.Taken); span >= brief {
			highest = max(highest, float64(*to.Counter-*from.Counter)/float64(span))
		}
	}
	return highest, whole
}

func stale(w Window) bool {
	last := w.last()
	since := last // the earliest point with the same timestamp as the last point
	unmoved, rated := last, true
	for i := len(w.Points) - 1; i >= 0; i-- {
		p := w.Points[i]
		if p.Taken.Equal(last.Taken) {
			since = p
		}
		if p.Counter == nil || last.Counter == nil || *p.Counter != *last.Counter {
			break
		}
		rated = rated && p.Reported != nil && *p.Reported > 0
		unmoved = p
	}
	frozen := last.Received.Sub(since.Received) >= staleAfter && w.OthersMoved.After(since.Received)
	idle := last.Taken.Sub(unmoved.Taken) >= staleAfter
	return frozen || idle && rated
}

// disagree reports whether the rates of the runtime and the kubelet differ too much. In this case,
// the samples of both sources get the verdict, since the two series do not show which source is
// right.
func disagree(w Window) bool {
	if len(w.Peer) == 0 {
		return false
	}
	mine, theirs := w.last(), w.Peer[len(w.Peer)-1]
	if mine.Reported == nil || theirs.Reported == nil || mine.Received.Sub(theirs.Received) > 2*time.Second {
		return false
	}
	a, okA := steady(w.Points, w.Tolerance)
	b, okB := steady(w.Peer, w.Tolerance)
	if !okA || !okB || differ(a, b, w.Tolerance, ticksASecond(1)) {
		return false
	}
	return differ(Cores(*mine.Reported), Cores(*theirs.Reported), w.Tolerance, ticksASecond(4))
}

// steady returns the computed rate, and whether the rate was nearly constant for 20 s (the constant
// lag). Only a nearly constant rate can be compared with a cached rate, which may be 20 s old.
func steady(points []Point, tolerance float64) (float64, bool) {
	rate, ok := Computed(points)
	if !ok {
		return 0, false
	}
	return rate, stepsBack(points, lag, func(s step) bool {
		// The error that ticks cause is larger for a step that is shorter than a second.
		slack := ticksASecond(2) * max(1, 1/s.span.Seconds())
		return !differ(s.cores(), rate, tolerance, slack)
	})
}

func differ(a, b, tolerance, slack float64) bool {
	return max(a, b)-min(a, b) > tolerance*max(a, b)+slack
}

func quantised(w Window) bool {
	steps := 0
	for i := len(w.Points) - 1; i > 0 && steps < quanta; i-- {
		to, from := w.Points[i].Counter, w.Points[i-1].Counter
		if to == nil || from == nil || *to < *from {
			return false
		}
		advance := *to - *from
		if advance%uint64(Tick) != 0 {
			return false
		}
		if advance > 0 {
			steps++
		}
	}
	return steps == quanta
}
