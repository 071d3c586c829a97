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

// mostCharts are drawn; of further containers there is the table only.
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
	slices.SortFunc(r.charts, func(a, b *chart) int {
		return cmp.Or(cmp.Compare(b.faults, a.faults), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Node, b.Node))
	})
	return r, nil
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
	if row.Point.Reported != nil {
		cores := stats.Cores(*row.Point.Reported)
		p.reported = &cores
	}
	c.points = append(c.points, p)
}
