package monitor

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/maruel/natural"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

const (
	// redrawEvery is the minimum time between two drawings of the table, so that a person
	// can follow it.
	redrawEvery = 500 * time.Millisecond
	// endedAfter is the time for which a container stays in the table after its last sample.
	endedAfter = time.Minute
	sparkWidth = 20
)

// table is a live table on a terminal: the answers to the first caller, and the faults
// in the answers to every caller.
type table struct {
	screen *livetable.Screen
	sort   string          // the sort column if there are no keys
	keys   *livetable.Keys // nil: none
	mutex  sync.Mutex
	series map[string]*tableRow
	at     time.Time
}

type tableRow struct {
	last   stats.Row
	spark  []float64
	faults map[stats.Verdict]int
	total  int
}

func newTable(out io.Writer, sort string) *table {
	return &table{screen: livetable.NewScreen(out), sort: sort, series: map[string]*tableRow{}}
}

func (t *table) rows(r stats.Reading, rows []stats.Row) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
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
	t.keys.Begin(func() { _ = t.end() })
	return t.draw()
}

// forget removes the ended containers of the reading's node and source. If the reading has an
// error, forget removes no container, since the reading does not show which containers have ended.
func (t *table) forget(r stats.Reading) {
	for id, s := range t.series {
		key := s.last.Key
		if r.Err == "" && key.Source == r.Source && key.Container.Node == r.Node &&
			r.Received.Sub(s.last.Point.Received) > endedAfter {
			delete(t.series, id)
		}
	}
}

// end draws the table as it is now.
func (t *table) end() error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.draw()
}

func (t *table) draw() error {
	var text bytes.Buffer
	view := t.keys.View()
	wanted := view.Current(t.sort)
	header := view.Mark([]string{"CONTAINER", "SOURCE", "REPORTED", "COMPUTED", "DIFF", "MEMORY", "AGE", "VERDICT",
		"FAULTS", "REPORTED OVER TIME"}, nil)
	if err := ui.Table(&text, header, t.lines(wanted.Choice)); err != nil {
		return err
	}
	if len(t.series) == 0 {
		text.WriteString("no container yet\n")
	}
	return t.screen.Draw(text.String(), wanted.Footer...)
}

// Columns returns the names of the columns by which the live table can be sorted.
func Columns() []string { return livetable.Names(columns()) }

// columns returns the columns by which the table can be sorted. Among equal rows, the row with more
// faults comes first.
func columns() []livetable.Column[*tableRow] {
	number := func(of func(stats.Row) float64) func(a, b *tableRow) int {
		return func(a, b *tableRow) int { return cmp.Compare(of(b.last), of(a.last)) }
	}
	return []livetable.Column[*tableRow]{
		{Name: "faults"},
		{Name: "container", Compare: func(a, b *tableRow) int {
			return natural.Compare(a.last.Key.Container.Path(), b.last.Key.Container.Path())
		}},
		{Name: "reported", Compare: number(func(r stats.Row) float64 {
			if r.Point.Reported == nil {
				return -1
			}
			return stats.Cores(*r.Point.Reported)
		})},
		{Name: "computed", Compare: number(func(r stats.Row) float64 {
			if r.Computed == nil {
				return -1
			}
			return *r.Computed
		})},
		{Name: "diff", Compare: number(func(r stats.Row) float64 {
			d, ok := r.Difference()
			if !ok {
				return -1
			}
			return math.Abs(d)
		})},
		{Name: "memory", Compare: number(func(r stats.Row) float64 {
			if r.Point.Memory == nil {
				return -1
			}
			return float64(*r.Point.Memory)
		})},
		{Name: "age", Compare: number(func(r stats.Row) float64 { return r.Age.Seconds() })},
	}
}

// lines returns the table's lines of the wanted containers, sorted.
func (t *table) lines(wanted livetable.Choice) [][]string {
	rows := make([]*tableRow, 0, len(t.series))
	for _, row := range t.series {
		if wanted.Matches(row.last.Key.Container.Path()) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b *tableRow) int {
		return cmp.Or(cmp.Compare(b.total, a.total), natural.Compare(a.last.Key.Container.Path(),
			b.last.Key.Container.Path()),
			cmp.Compare(a.last.Key.Source, b.last.Key.Source))
	})
	livetable.Sort(rows, columns(), wanted)
	var lines [][]string
	for _, row := range rows {
		lines = append(lines, []string{
			row.last.Key.Container.Path(), string(row.last.Key.Source), reported(row.last), computed(row.last),
			difference(row.last),
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
