package stats

import (
	"time"
)

const (
	// staleAfter is longer than the kubelet's caches live.
	staleAfter = 30 * time.Second
	// lag is how old a rate may be that is a cache's: the kubelet's are of the
	// last 10 s, computed every 10 s.
	lag = 20 * time.Second
	// brief is the least time between two samples of which a rate says anything.
	brief = 100 * time.Millisecond
	// quanta is how many steps of the counter show that it is no chance.
	quanta = 8
	// History is how long a series has to be kept to be judged.
	History = staleAfter + RateWindow
)

// Window is what is known when a sample is judged: its series up to it, and what
// is beside it.
type Window struct {
	Source    Source
	Points    []Point // in the order in which they were asked for; the last is judged
	Limit     float64 // the container's CPU limit in cores; 0: none is known
	NodeCores float64 // 0: not known
	Tolerance float64 // 0.2 is 20 %

	// OthersMoved is when (by this machine's clock) the timestamp of another
	// container of the same series of answers last moved.
	OthersMoved time.Time
	// Peer is the same container as the other of CRI and Summary sees it, up to
	// now.
	Peer []Point
}

// Judge gives the verdicts on the window's last point, in the order of Rules.
func Judge(w Window) []Verdict { return judge(w, Rules()) }

func judge(w Window, rules []Rule) []Verdict {
	if len(w.Points) == 0 || w.Source == Node { // which reports no rates: it is there to compare with
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

// Checked is a set of rules that could judge a sample. It takes no memory of its own,
// since there are many samples.
type Checked uint16

// checked are the rules that could judge the window's last point, whatever they found.
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

// Verdicts are those that the sample could have got.
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

// before is the last point's predecessor.
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
		return false // it may have become idle just now
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
	cores := w.NodeCores
	if cores == 0 {
		cores = manyCores
	}
	// What has begun again cannot have used more than all there is since.
	between := max(last.Received.Sub(before.Received), last.Taken.Sub(before.Taken)) + Tick
	return float64(*last.Counter) > float64(between)*cores
}

// ticksASecond is how much the ticks of the counter can add to a rate over a
// second.
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

// highestRate between any two samples in a row within the window, and whether
// the series is that long.
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
	since := last // the earliest point with the same timestamp
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

// disagree is told of the runtime's sample and of the kubelet's alike: the
// series themselves do not say who is right.
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

// steady is the computed rate, where it was about the same for so long that a
// cache's rate is of the same time.
func steady(points []Point, tolerance float64) (float64, bool) {
	rate, ok := Computed(points)
	if !ok {
		return 0, false
	}
	return rate, stepsBack(points, lag, func(s step) bool {
		// A step shorter than a second has more ticks to err by.
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
