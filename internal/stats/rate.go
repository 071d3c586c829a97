package stats

import "time"

const (
	// RateWindow is the least time over which a rate is honest. Windows counts
	// CPU time in ticks of 15.625 ms: over 10 s that is an error of 0.16 % of a
	// core at most.
	RateWindow = 10 * time.Second
	// Tick is by how much Windows' counters of CPU time advance.
	Tick = 15625 * time.Microsecond
	// apart is the least time between two samples for what happened in between
	// to be more than ticks.
	apart = 500 * time.Millisecond
	// manyCores is more than a node has, where it is not known how many.
	manyCores = 1024
)

// Computed is the rate in cores at the last point: the counter's difference to
// the latest point that is at least RateWindow older. There is none while the
// series is younger than that, or since its counter went back.
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
			return 0, false // another life
		}
		next = *p.Counter
		if span := last.Taken.Sub(p.Taken); span >= window {
			return float64(*last.Counter-*p.Counter) / float64(span), true
		}
	}
	return 0, false
}

// step is what happened between two samples that are not too close.
type step struct {
	span    time.Duration
	advance uint64 // of the counter, in nanoseconds
}

func (s step) cores() float64 { return float64(s.advance) / float64(s.span) }

// stepsBack visits the steps before the last point, the latest first, until they
// cover the window. Whole is whether they do: it ends where the counter is missing
// or goes back, or where visit has seen enough.
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
