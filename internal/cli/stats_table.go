package cli

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/stats"
	"github.com/swdt-dev/swdt/internal/ui"
)

const (
	// redrawEvery is as often as a person can look.
	redrawEvery = 500 * time.Millisecond
	// endedAfter is how long a container stands in the table that its source tells
	// of no more.
	endedAfter = time.Minute
	sparkWidth = 20
)

// statsTable is a live table on a terminal: what the one who watches gets, and
// how often anybody got a fault.
type statsTable struct {
	screen *screen
	sort   string // the column
	series map[string]*tableRow
	at     time.Time
}

type tableRow struct {
	last   stats.Row
	spark  []float64
	faults map[stats.Verdict]int
	total  int
}

func newStatsTable(out io.Writer, sort string) *statsTable {
	return &statsTable{screen: newScreen(out), sort: sort, series: map[string]*tableRow{}}
}

func (t *statsTable) rows(r stats.Reading, rows []stats.Row) error {
	for _, row := range rows {
		id := string(row.Key.Source) + " " + row.Key.Container.Node + " " + row.Key.Container.Path()
		s := t.series[id]
		if s == nil {
			s = &tableRow{last: row, faults: map[stats.Verdict]int{}}
			t.series[id] = s
		}
		for _, v := range row.Faults() {
			s.faults[v]++
			s.total++
		}
		if row.Key.Caller != 0 {
			continue
		}
		s.last = row
		value := 0.0
		if row.Point.Reported != nil {
			value = stats.Cores(*row.Point.Reported)
		}
		s.spark = append(s.spark, value)
		s.spark = s.spark[max(0, len(s.spark)-sparkWidth):]
	}
	t.forget(r)
	if r.Received.Sub(t.at) < redrawEvery {
		return nil
	}
	t.at = r.Received
	return t.draw()
}

// forget what has ended, as the source says that answers.
func (t *statsTable) forget(r stats.Reading) {
	for id, s := range t.series {
		key := s.last.Key
		if r.Err == "" && key.Source == r.Source && key.Container.Node == r.Node && r.Received.Sub(s.last.Point.Received) > endedAfter {
			delete(t.series, id)
		}
	}
}

func (t *statsTable) end() error { return t.draw() }

func (t *statsTable) draw() error {
	var table bytes.Buffer
	if err := ui.Table(&table, []string{"CONTAINER", "SOURCE", "REPORTED", "COMPUTED", "DIFF", "MEMORY", "AGE", "VERDICT", "FAULTS", "REPORTED OVER TIME"}, t.lines()); err != nil {
		return err
	}
	if len(t.series) == 0 {
		table.WriteString("no container yet\n")
	}
	return t.screen.draw(table.String())
}

// statsColumns are what the table is sorted by. Rows that are equal have those with
// faults first.
func statsColumns() []column[*tableRow] {
	number := func(of func(stats.Row) float64) func(a, b *tableRow) int {
		return func(a, b *tableRow) int { return cmp.Compare(of(b.last), of(a.last)) }
	}
	return []column[*tableRow]{
		{"faults", nil},
		{"container", func(a, b *tableRow) int {
			return natural.Compare(a.last.Key.Container.Path(), b.last.Key.Container.Path())
		}},
		{"reported", number(func(r stats.Row) float64 {
			if r.Point.Reported == nil {
				return -1
			}
			return stats.Cores(*r.Point.Reported)
		})},
		{"computed", number(func(r stats.Row) float64 {
			if r.Computed == nil {
				return -1
			}
			return *r.Computed
		})},
		{"diff", number(func(r stats.Row) float64 {
			d, ok := r.Difference()
			if !ok {
				return -1
			}
			return math.Abs(d)
		})},
		{"memory", number(func(r stats.Row) float64 {
			if r.Point.Memory == nil {
				return -1
			}
			return float64(*r.Point.Memory)
		})},
		{"age", number(func(r stats.Row) float64 { return r.Age.Seconds() })},
	}
}

// lines are the containers, sorted.
func (t *statsTable) lines() [][]string {
	rows := make([]*tableRow, 0, len(t.series))
	for _, row := range t.series {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *tableRow) int {
		return cmp.Or(cmp.Compare(b.total, a.total), natural.Compare(a.last.Key.Container.Path(), b.last.Key.Container.Path()),
			cmp.Compare(a.last.Key.Source, b.last.Key.Source))
	})
	sortRows(rows, statsColumns(), t.sort)
	var lines [][]string
	for _, row := range rows {
		lines = append(lines, []string{
			row.last.Key.Container.Path(), string(row.last.Key.Source), reported(row.last), computed(row.last), difference(row.last),
			memory(row.last), age(row.last), verdict(row.last), stats.Counts(row.faults, "%d"), sparkline(row.spark),
		})
	}
	return lines
}

func sparkline(values []float64) string {
	const bars = "▁▂▃▄▅▆▇█"
	highest := slices.Max(append([]float64{0}, values...))
	var b strings.Builder
	for _, v := range values {
		level := 0
		if highest > 0 {
			level = int(v / highest * 7)
		}
		b.WriteRune([]rune(bars)[level])
	}
	return b.String()
}
