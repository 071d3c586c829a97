// Package report makes one HTML page of a recording: for each container the
// reported and the computed cores over time with what cannot be marked, and the
// sums of it, beside another recording's where there is one. The page holds all it
// needs and fetches nothing.
//
//   - report.go: from recordings to what the page shows
//   - chart.go: the lines of a chart
//   - page.go, report.html: the page
package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/stats"
	"github.com/swdt-dev/swdt/internal/stats/record"
)

// mostCharts are drawn of a recording; further containers are in the list only.
const mostCharts = 60

// Recorded is a recording, summed up.
type Recorded struct {
	Name    string                `json:"name"`
	Meta    record.Meta           `json:"recording"`
	Sources []stats.SourceSummary `json:"sources"`

	charts []*chart
}

// Load reads a file's recordings and sums them up. Each is judged by itself: nobody
// knows what was between two of them.
func Load(path string) (Recorded, error) {
	r := Recorded{Name: path}
	var follower *stats.Follower
	var started time.Time
	tally, readings := stats.NewTally(), 0
	charts := map[chartKey]*chart{}
	recording, err := record.Read(path, func(meta record.Meta, reading stats.Reading) error {
		readings++
		if follower == nil || !meta.Started.Equal(started) {
			follower, started = stats.NewFollower(meta.Tolerance), meta.Started
			tally.Next()
		}
		rows := follower.Add(reading)
		tally.Add(reading, rows)
		for _, row := range rows {
			key := chartKey{row.Key.Container.Node, row.Key.Container.Path(), row.Key.Source}
			c := charts[key]
			if c == nil {
				c = &chart{chartKey: key, counts: map[stats.Verdict]int{}}
				charts[key] = c
			}
			c.add(row)
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	if readings == 0 {
		return r, fmt.Errorf("read the recording: %s holds no readings: nothing had answered when it ended", path)
	}
	r.Meta, r.Sources = recording.Meta(), tally.Summaries()
	for _, c := range charts {
		r.charts = append(r.charts, c)
	}
	sortByUse(r.charts)
	return r, nil
}

// sortByUse puts the busiest first: of hundreds of containers it is one of the few that
// tell something.
func sortByUse(charts []*chart) {
	slices.SortFunc(charts, func(a, b *chart) int {
		return cmp.Or(cmp.Compare(b.use(), a.use()), cmp.Compare(b.faults, a.faults), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Source, b.Source), cmp.Compare(a.Node, b.Node))
	})
}

// worthDrawing are the charts of the page, in their order: half of them those with the
// most faults, the others the busiest.
func worthDrawing(charts []*chart) []*chart {
	if len(charts) <= mostCharts {
		return charts
	}
	byFaults := slices.Clone(charts)
	slices.SortStableFunc(byFaults, func(a, b *chart) int { return cmp.Compare(b.faults, a.faults) })
	drawn := map[*chart]bool{}
	for _, c := range byFaults[:mostCharts/2] {
		drawn[c] = c.faults > 0
	}
	room := mostCharts
	for _, faulty := range drawn {
		if faulty {
			room--
		}
	}
	for _, c := range charts {
		if !drawn[c] && room > 0 {
			drawn[c] = true
			room--
		}
	}
	return slices.DeleteFunc(slices.Clone(charts), func(c *chart) bool { return !drawn[c] })
}

type chartKey struct {
	Node   string
	Path   string
	Source stats.Source
}

// chart is a container as one source sees it.
type chart struct {
	chartKey
	points []chartPoint
	counts map[stats.Verdict]int
	faults int
	limit  float64
	used   float64 // the sum of the computed rates, cores
	rates  int     // how many there are
	most   float64 // the highest reported rate
}

// use is the mean of the computed rates, in cores.
func (c *chart) use() float64 {
	if c.rates == 0 {
		return 0
	}
	return c.used / float64(c.rates)
}

// Listed is a container in the page's list.
type Listed struct {
	Title, Source, Node string
	Counts              string // verdicts
	Use, Most           string // cores: computed on average, reported at most
	Order, Faults       float64
}

func (c *chart) listed() Listed {
	return Listed{
		Title: c.Path, Source: string(c.Source), Node: c.Node, Counts: counts(c.counts),
		Use: fmt.Sprintf("%.3f", c.use()), Most: fmt.Sprintf("%.3f", c.most), Order: c.use(), Faults: float64(c.faults),
	}
}

type chartPoint struct {
	at       time.Time
	reported *float64
	computed *float64
	memory   *uint64
	caller   int
	verdicts []stats.Verdict
	faulty   bool
}

func (c *chart) add(row stats.Row) {
	faults := row.Faults()
	for _, v := range row.Verdicts {
		c.counts[v]++
	}
	c.faults += len(faults)
	c.limit = row.Limit
	if row.Key.Caller != 0 && len(faults) == 0 {
		return // the line is of the one who watches; of others only what is wrong
	}
	p := chartPoint{
		at: row.Point.Received, computed: row.Computed, memory: row.Point.Memory, caller: row.Key.Caller,
		verdicts: row.Verdicts, faulty: len(faults) > 0,
	}
	if row.Computed != nil && row.Key.Caller == 0 {
		c.used, c.rates = c.used+*row.Computed, c.rates+1
	}
	if row.Point.Reported != nil {
		cores := stats.Cores(*row.Point.Reported)
		p.reported = &cores
		c.most = max(c.most, cores)
	}
	c.points = append(c.points, p)
}
