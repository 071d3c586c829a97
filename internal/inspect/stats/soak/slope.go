package soak

import (
	"math"
	"slices"
	"time"
)

// Verdict says whether a number grows.
type Verdict string

const (
	// Growing: the number grows, and more than by one step.
	Growing Verdict = "growing"
	// Falling: the number falls, and more than by one step.
	Falling Verdict = "falling"
	// Steady: if the number grew by more than noticeable, that would have been seen.
	Steady Verdict = "steady"
	// Unsure: there are enough points, and the number moves too irregularly for an answer.
	Unsure Verdict = "unsure"
	// TooFew: there are too few points for an answer.
	TooFew Verdict = "tooFew"
)

// Verdicts returns all verdicts, those to look at first.
func Verdicts() []Verdict { return []Verdict{Growing, Falling, Unsure, TooFew, Steady} }

// The estimate is that of Theil and Sen: the median of the slopes between each two points, which a third of wild points do not
// move. Its interval is Sen's (Estimates of the regression coefficient based on Kendall's tau, 1968), from the variance of
// Kendall's S. Both assume that points are independent of each other. Values a second apart are not, so the points are those
// of blocks, each much longer than the period of a garbage collection.
const (
	blocks = 18 // in the whole time
	// shortestBlock and leastBlocks bound the answer from below: with less there is none.
	shortestBlock = 5 * time.Minute
	leastBlocks   = 10
	// sure is the quantile of the normal distribution for an interval of 99.7 %.
	sure = 3
	// noticeable is the least relative change in an hour that counts as growth.
	noticeable = 0.001
	// steadyBelow is the relative change in an hour that a steady number stays below.
	steadyBelow = 0.01
	// stepFits is the part of the distance from a line below which the distance from one step must be for the number to have
	// stepped, not grown.
	stepFits = 0.8
)

// Slope is the change of a number in an hour.
type Slope struct {
	PerHour float64 `json:"perHour"`
	// Least and Most are the ends of the interval in which the slope is with 99.7 % confidence.
	Least   float64 `json:"least"`
	Most    float64 `json:"most"`
	Percent float64 `json:"percentPerHour"` // of the value at the beginning; 0 if that is 0
	First   float64 `json:"first"`
	Last    float64 `json:"last"`
	Points  int     `json:"points"` // minutes with values
	Hours   float64 `json:"hours"`  // from the first to the last point
	Starts  int     `json:"starts"` // instances of the program: 1 without a restart
	Verdict Verdict `json:"verdict"`
}

// slopeOf fits a slope to the segments of a series.
func slopeOf(segments []*segment) Slope {
	s := Slope{Starts: len(segments), Verdict: TooFew}
	var first, last time.Time
	for _, segment := range segments {
		segment.finish()
		if len(segment.points) == 0 {
			continue
		}
		begin, end := segment.points[0], segment.points[len(segment.points)-1]
		if s.Points == 0 || begin.at.Before(first) {
			first, s.First = begin.at, begin.value
		}
		if s.Points == 0 || end.at.After(last) {
			last, s.Last = end.at, end.value
		}
		s.Points += len(segment.points)
	}
	s.Hours = last.Sub(first).Hours()
	length := max(last.Sub(first)/blocks, shortestBlock)
	var all [][]point
	count := 0
	for _, segment := range segments {
		// the beginning of a program is no leak: it fills its caches
		if of := blocksOf(segment.points, length); len(of) > 1 {
			all, count = append(all, of), count+len(of)
		}
	}
	if count < leastBlocks {
		return s
	}
	s.fit(all)
	return s
}

// blocksOf reduces points to one a block. Blocks with less than half of the usual number of points are left out, such as the
// last one.
func blocksOf(points []point, length time.Duration) (all []point) {
	if len(points) == 0 {
		return nil
	}
	begin := points[0].at
	for len(points) > 0 {
		n := slices.IndexFunc(points, func(p point) bool { return p.at.Sub(begin) >= length })
		switch {
		case n < 0:
			n = len(points)
		case n == 0: // no point for many blocks: one step, however many they are
			begin = begin.Add(points[0].at.Sub(begin).Truncate(length))
			continue
		}
		if points[n-1].at.Sub(points[0].at) >= length/2 {
			var values []float64
			for _, p := range points[:n] {
				values = append(values, p.value)
			}
			all = append(all, point{at: begin.Add(length / 2), value: low(values)})
		}
		points, begin = points[n:], begin.Add(length)
	}
	return all
}

// fit sets the slope, its interval and its verdict from the blocks of each segment.
func (s *Slope) fit(segments [][]point) {
	slopes, variance := []float64{}, 0.0
	for _, of := range segments {
		slopes = append(slopes, pairs(of)...)
		n := float64(len(of))
		variance += n * (n - 1) * (2*n + 5) / 18
	}
	slices.Sort(slopes)
	n, width := float64(len(slopes)), sure*math.Sqrt(variance)
	s.PerHour = median(slopes)
	s.Least, s.Most = slopes[clamp(math.Floor((n-width)/2), len(slopes))], slopes[clamp(math.Ceil((n+width)/2), len(slopes))]
	base := math.Abs(level(segments))
	if base > 0 {
		s.Percent = 100 * s.PerHour / base
	}
	s.Verdict = s.judge(segments, base)
}

// judge returns the verdict for a number that usually has about the value base.
func (s *Slope) judge(segments [][]point, base float64) Verdict {
	switch {
	case s.Least > 0 && s.PerHour > noticeable*base && !s.stepped(segments):
		return Growing
	case s.Most < 0 && -s.PerHour > noticeable*base && !s.stepped(segments):
		return Falling
	case base == 0 && s.Least == 0 && s.Most == 0,
		s.Most < steadyBelow*base && s.Least > -steadyBelow*base:
		return Steady
	}
	return Unsure
}

// stepped reports whether one step of the longest segment explains its values better than the slope does.
func (s *Slope) stepped(segments [][]point) bool {
	longest := slices.MaxFunc(segments, func(a, b []point) int { return len(a) - len(b) })
	line := slices.Clone(longest)
	for i := range line {
		line[i].value -= s.PerHour * line[i].at.Sub(line[0].at).Hours()
	}
	step := math.Inf(1)
	for k := 1; k < len(longest); k++ {
		step = min(step, distance(longest[:k])+distance(longest[k:]))
	}
	return step < stepFits*distance(line)
}

// distance returns the sum of the distances of values from their median.
func distance(points []point) (sum float64) {
	var values []float64
	for _, p := range points {
		values = append(values, p.value)
	}
	slices.Sort(values)
	middle := median(values)
	for _, v := range values {
		sum += math.Abs(v - middle)
	}
	return sum
}

// pairs returns the slopes between each two points, in values an hour.
func pairs(of []point) (slopes []float64) {
	for i, a := range of {
		for _, b := range of[i+1:] {
			slopes = append(slopes, (b.value-a.value)/b.at.Sub(a.at).Hours())
		}
	}
	return slopes
}

// level returns the usual value at the beginning of the segments.
func level(segments [][]point) float64 {
	var values []float64
	for _, of := range segments {
		values = append(values, of[0].value)
	}
	slices.Sort(values)
	return median(values)
}

// median returns the median of sorted values.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// clamp returns an index as an index of n values.
func clamp(index float64, n int) int { return min(max(int(index), 0), n-1) }
