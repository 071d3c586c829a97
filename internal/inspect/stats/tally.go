package stats

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Tally sums up the readings and verdicts of each source.
type Tally struct {
	sources map[Source]*sourceTally
}

type sourceTally struct {
	before      time.Duration // the total length of the earlier watches
	first, last time.Time     // the first and the last reading of this watch; zero: none yet
	calls       int
	failed      int
	latencies   thinned // seconds
	samples     int
	reported    int
	ratios      thinned
	verdicts    map[Verdict]int
	containers  map[string]bool
}

// NewTally returns an empty Tally.
func NewTally() *Tally { return &Tally{sources: map[Source]*sourceTally{}} }

// Next begins another watch. The time between two watches does not count.
func (t *Tally) Next() {
	for _, s := range t.sources {
		s.before, s.first, s.last = s.span(), time.Time{}, time.Time{}
	}
}

// Add counts a reading, and the rows that a Follower returned for it.
func (t *Tally) Add(r Reading, rows []Row) {
	s := t.sources[r.Source]
	if s == nil {
		s = &sourceTally{verdicts: map[Verdict]int{}, containers: map[string]bool{}}
		t.sources[r.Source] = s
	}
	s.calls++
	if s.first.IsZero() {
		s.first = r.Received
	}
	s.last = r.Received
	if r.Err != "" {
		s.failed++
		return
	}
	s.latencies.add(r.Latency.Seconds())
	for _, row := range rows {
		s.add(row)
	}
}

func (s *sourceTally) add(row Row) {
	s.samples++
	if len(s.containers) < mostSeries {
		s.containers[row.Key.Container.Node+" "+row.Key.Container.Path()] = true
	}
	if row.Point.Reported != nil {
		s.reported++
	}
	for _, v := range row.Verdicts {
		s.verdicts[v]++
	}
	if difference, ok := row.Difference(); ok && *row.Computed >= worthDividing {
		s.ratios.add(difference + 1)
	}
}

// worthDividing is the lowest computed rate, in cores, for which the ratio of reported to computed
// is counted. The ratio of an idle container is arbitrary, since a single tick changes it much.
const worthDividing = 0.005

// mostKept is the number of values at which thinned drops every second one. The values that
// remain are enough for a distribution.
const mostKept = 1 << 16

// thinned keeps every value of a short watch. Of a longer watch it keeps every second value,
// then every fourth and so on, evenly spread over the whole watch.
type thinned struct {
	kept   []float64
	seen   int
	every  int
	lowest float64
	most   float64
}

func (t *thinned) add(v float64) {
	if t.seen == 0 {
		t.every, t.lowest, t.most = 1, v, v
	}
	t.lowest, t.most = min(t.lowest, v), max(t.most, v)
	if t.seen%t.every == 0 {
		t.kept = append(t.kept, v)
	}
	t.seen++
	if len(t.kept) < mostKept {
		return
	}
	for i := range t.kept[:mostKept/2] {
		t.kept[i] = t.kept[2*i]
	}
	t.kept = t.kept[:mostKept/2]
	t.every *= 2
}

func (t *thinned) distribution() Distribution {
	d := distribution(t.kept)
	d.Count, d.Min, d.Max = t.seen, t.lowest, t.most
	return d
}

// Distribution summarizes the values of a number.
type Distribution struct {
	Count  int     `json:"count"`
	Min    float64 `json:"min"`
	P5     float64 `json:"p5"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

func distribution(values []float64) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	sorted := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 { return sorted[int(q*float64(len(sorted)-1)+0.5)] }
	return Distribution{
		Count: len(sorted), Min: sorted[0], P5: at(0.05), Median: at(0.5), P95: at(0.95), Max: sorted[len(sorted)-1],
	}
}

// SourceSummary has the sums for a source.
type SourceSummary struct {
	Source     Source  `json:"source"`
	Seconds    float64 `json:"seconds"`
	Containers int     `json:"containers"`
	Calls      int     `json:"calls"`
	Failed     int     `json:"failed"`
	Samples    int     `json:"samples"`
	// Reported is the number of samples with a rate.
	Reported int `json:"reported"`
	// Ratio is the distribution of reported/computed. It omits samples without one of the two
	// rates, and samples of idle containers.
	Ratio          Distribution `json:"ratio"`
	LatencySeconds Distribution `json:"latencySeconds"`
	// Verdicts has the number of samples that got each verdict. PerMinute has the same number per
	// minute; PerMinute is empty if there was only a single answer.
	Verdicts  map[Verdict]int     `json:"verdicts"`
	PerMinute map[Verdict]float64 `json:"perMinute"`
}

// Summaries returns the summaries of the sources that were asked, in the order of Sources.
func (t *Tally) Summaries() []SourceSummary {
	var all []SourceSummary
	for _, source := range Sources() {
		if s := t.sources[source]; s != nil {
			all = append(all, s.summary(source))
		}
	}
	return all
}

func (s *sourceTally) span() time.Duration { return s.before + s.last.Sub(s.first) }

func (s *sourceTally) summary(source Source) SourceSummary {
	span := s.span()
	sum := SourceSummary{
		Source: source, Seconds: span.Seconds(), Containers: len(s.containers), Calls: s.calls, Failed: s.failed,
		Samples: s.samples, Reported: s.reported, Ratio: s.ratios.distribution(),
		LatencySeconds: s.latencies.distribution(),
		Verdicts:       map[Verdict]int{}, PerMinute: map[Verdict]float64{},
	}
	for v, n := range s.verdicts {
		sum.Verdicts[v] = n
		if span > 0 {
			sum.PerMinute[v] = float64(n) / span.Minutes()
		}
	}
	return sum
}

// Counts returns the number of each verdict as text, in the order of the rules, such as
// "zero 12, stale 3". format is the format of one number, such as %d.
func Counts[N int | float64](verdicts map[Verdict]N, format string) string {
	var parts []string
	for _, v := range Verdicts() {
		if n := verdicts[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s "+format, v, n))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
