package stats

import "time"

const (
	// RateWindow is the minimum time for an accurate rate. Windows counts CPU time in ticks
	// of 15.625 ms: over 10 s, the error is at most 0.16 % of a core.
	RateWindow = 10 * time.Second
	// Tick is the step of Windows' counters of CPU time.
	Tick = 15625 * time.Microsecond
	// apart is the minimum time between two samples whose difference is compared. Over less
	// time, the difference may be only the effect of ticks.
	apart = 500 * time.Millisecond
	// manyCores is larger than the number of cores of any node. It is used if the number
	// of a node's cores is not known.
	manyCores = 1024
)

// Computed returns the rate, in cores, at the last point. It compares the counter with the counter
// of the latest point that is at least RateWindow older. It returns false if there is no such
// point, if the last point has no counter, or if the counter went back between the two points.
func Computed(points []Point) (cores float64, ok bool) {
	return rateOver(points, RateWindow)
}

func rateOver(points []Point, window time.Duration) (float64, bool) {
	if len(points) == 0 {
		return 0, false
	}
	last := points[len(points)-1]
	if last.Counter == nil {
		return 0, false
	}
	next := *last.Counter
	for i := len(points) - 2; i >= 0; i-- {
		p := points[i]
		if p.Counter == nil {
			continue
		}
		if *p.Counter > next {
			return 0, false // the container restarted
		}
		next = *p.Counter
		if span := last.Taken.Sub(p.Taken); span >= window {
			return float64(*last.Counter-*p.Counter) / float64(span), true
		}
	}
	return 0, false
}

// step is the difference between two samples that were taken at least 500 ms apart (the constant
// apart).
type step struct {
	span    time.Duration
	advance uint64 // increase of the counter, in nanoseconds
}

func (s step) cores() float64 { return float64(s.advance) / float64(s.span) }

// stepsBack visits the steps before the last point, the latest first, until the visited steps cover
// the window, and reports whether they cover it. The visits end early if the counter is missing or
// goes back, or if visit returns false.
func stepsBack(points []Point, window time.Duration, visit func(step) bool) (whole bool) {
	if len(points) == 0 {
		return false
	}
	to := points[len(points)-1]
	end := to
	for i := len(points) - 2; i >= 0; i-- {
		from := points[i]
		if from.Counter == nil || to.Counter == nil || *from.Counter > *to.Counter {
			return false
		}
		span := to.Taken.Sub(from.Taken)
		if span < apart {
			continue
		}
		if !visit(step{span: span, advance: *to.Counter - *from.Counter}) {
			return false
		}
		to = from
		if end.Taken.Sub(from.Taken) >= window {
			return true
		}
	}
	return false
}
