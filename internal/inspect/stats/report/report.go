// Package report renders a recording as one HTML page. The page shows the reported and the
// computed cores of each container over time, marks the samples that cannot be true, and
// lists the sums of each source. It can show a second recording beside the first. The page
// is self-contained and fetches nothing.
//
//   - report.go: the containers and sums of a recording
//   - compare.go: the text that compares recordings
//   - chart.go: the lines of a chart
//   - page.go, report.html: the page
package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/record"
)

// mostCharts is the maximum number of charts of a recording. Further containers are only
// in the list.
const mostCharts = 60

// Recorded is a recording with its sums for each source.
type Recorded struct {
	Name    string                `json:"name"`
	Meta    Meta                  `json:"recording"`
	Sources []stats.SourceSummary `json:"sources"`

	charts []*chart
}

// Meta is record.Meta in the form of a result, which always has all fields.
type Meta struct {
	Version   int            `json:"swdtStats"`
	Started   time.Time      `json:"started"`
	Interval  string         `json:"interval"`
	Callers   int            `json:"callers"` // the callers in addition to the watch itself
	Sources   []stats.Source `json:"sources"`
	Tolerance float64        `json:"tolerance"`
	Nodes     []Node         `json:"nodes"`
}

// Node is record.NodeFacts in the form of a result, which always has all fields.
type Node struct {
	Name    string  `json:"name"`
	Windows string  `json:"windows"`
	Cores   float64 `json:"cores"` // 0: not known
	Runtime string  `json:"runtime"`
	Kubelet string  `json:"kubelet"`
	Note    string  `json:"note"`
}

func newMeta(m record.Meta) Meta {
	meta := Meta{Version: m.Version, Started: m.Started, Interval: m.Interval, Callers: m.Callers, Sources: m.Sources,
		Tolerance: m.Tolerance}
	for _, node := range m.Nodes {
		meta.Nodes = append(meta.Nodes, Node(node))
	}
	return meta
}

// Load reads the recordings of a file and sums them up. It judges each recording
// separately, since the time between two recordings is unknown.
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
	r.Meta, r.Sources = newMeta(recording.Meta()), tally.Summaries()
	for _, c := range charts {
		r.charts = append(r.charts, c)
	}
	sortByUse(r.charts)
	return r, nil
}

// sortByUse puts the busiest containers first, since most of several hundred containers
// are idle.
func sortByUse(charts []*chart) {
	slices.SortFunc(charts, func(a, b *chart) int {
		return cmp.Or(cmp.Compare(b.use(), a.use()), cmp.Compare(b.faults, a.faults), cmp.Compare(a.Path, b.Path),
			cmp.Compare(a.Source, b.Source), cmp.Compare(a.Node, b.Node))
	})
}

// worthDrawing returns the charts of the page in their given order. Up to half of the
// returned charts are the charts with the most faults; the others are the busiest.
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

// chart is the series of a container from one source.
type chart struct {
	chartKey
	points []chartPoint
	counts map[stats.Verdict]int
	faults int
	limit  float64
	used   float64 // the sum of the computed rates, in cores
	rates  int     // the number of computed rates
	most   float64 // the highest reported rate, in cores
	// reports is set if the source has reported a rate: some runtimes report the CPU time alone.
	reports bool
}

// use returns the mean of the computed rates, in cores.
func (c *chart) use() float64 {
	if c.rates == 0 {
		return 0
	}
	return c.used / float64(c.rates)
}

// Listed is a container in the page's list.
type Listed struct {
	Title, Source, Node string
	Counts              string // how often each verdict occurs, as text
	Use, Most           string // in cores: the mean computed rate, and the highest reported rate
	Order, Faults       float64
}

func (c *chart) listed() Listed {
	return Listed{
		Title: c.Path, Source: string(c.Source), Node: c.Node, Counts: counts(c.counts),
		Use: known(c.use(), c.rates > 0), Most: known(c.most, c.reports), Order: c.use(), Faults: float64(c.faults),
	}
}

// known returns a number of cores as text. Without a value, such as that of a runtime that reports no rate, it returns a
// dash: 0.000 would be a measurement.
func known(cores float64, has bool) string {
	if !has {
		return "–"
	}
	return fmt.Sprintf("%.3f", cores)
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
		return // the lines show caller 0; for other callers, only faults are marked
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
		c.most, c.reports = max(c.most, cores), true
	}
	c.points = append(c.points, p)
}
