package soak

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/record"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Row is the slope of one number.
type Row struct {
	Key
	Slope
}

// Report is the result of `swdt stats soak`.
type Report struct {
	// Rows are the numbers, those that grow first.
	Rows []Row `json:"rows"`
	// Dropped reports whether there were more series, or starts of a program, than swdt keeps.
	Dropped bool `json:"dropped"`
}

// Report fits a slope to each series.
func (s *Series) Report() Report {
	r := Report{Rows: []Row{}, Dropped: s.dropped}
	for _, k := range s.keys() {
		r.Rows = append(r.Rows, Row{Key: k, Slope: slopeOf(s.all[k])})
	}
	slices.SortStableFunc(r.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(slices.Index(Verdicts(), a.Verdict), slices.Index(Verdicts(), b.Verdict)),
			cmp.Compare(math.Abs(b.Percent), math.Abs(a.Percent)))
	})
	return r
}

// Load reads a recording.
func Load(path string) (Report, error) {
	s := NewSeries()
	_, err := record.ReadAll(path, record.Receiver{
		Reading: func(_ record.Meta, r stats.Reading) error {
			s.AddReading(r)
			return nil
		},
		Levels: func(l stats.Levels) error {
			s.AddLevels(l)
			return nil
		},
	})
	return s.Report(), err
}

// Grows reports whether something grows, or a disk fills.
func (r Report) Grows() bool {
	return slices.ContainsFunc(r.Rows, Row.grows)
}

// grows reports whether the number grows, or the bytes of which it is the free ones. Nodes do not report the size of a disk.
func (r Row) grows() bool {
	return r.Verdict == Growing || r.Verdict == Falling && r.Measure == stats.DiskFree
}

// Columns returns the columns of the table.
func Columns(bool) []string {
	return []string{"NODE", "OF", "MEASURE", "VERDICT", "AN HOUR", "%", "BETWEEN", "FIRST", "LAST", "HOURS", "POINTS"}
}

// WriteText writes a table of the numbers that do not stay as they are, and how many do. Wide, it has all numbers.
func (r Report) WriteText(p *ui.Page) error {
	steady, few := 0, 0
	var rows [][]string
	for _, row := range r.Rows {
		switch {
		case p.Wide:
		case row.Verdict == Steady:
			steady++
			continue
		case row.Verdict == TooFew:
			few++
			continue
		}
		rows = append(rows, row.cells())
	}
	nothing := "nothing grows"
	if len(r.Rows) == few {
		nothing = "there is no answer yet"
	}
	if err := ui.TableOr(p, nothing, Columns(p.Wide), rows); err != nil {
		return err
	}
	var notes []string
	if steady > 0 {
		notes = append(notes, fmt.Sprintf("%d steady, which change by less than 1 %% an hour", steady))
	}
	if few > 0 {
		notes = append(notes, fmt.Sprintf("%d with too few points: an answer needs %s, without a restart in between", few,
			ui.Age(leastBlocks*shortestBlock)))
	}
	if r.Dropped {
		notes = append(notes, fmt.Sprintf("more than %d series, or %d starts of one program: the others are left out",
			mostSeries, mostSegments))
	}
	for _, note := range notes {
		if _, err := fmt.Fprintln(p, note); err != nil {
			return err
		}
	}
	return nil
}

func (r Row) cells() []string {
	verdict := string(r.Verdict)
	if r.grows() {
		verdict = ui.Bad(verdict)
	}
	if r.Verdict == TooFew {
		return []string{r.Node, r.Of, r.Measure, verdict, "", "", "", r.number(r.First), r.number(r.Last),
			fmt.Sprintf("%.1f", r.Hours), fmt.Sprint(r.Points)}
	}
	return []string{r.Node, r.Of, r.Measure, verdict, signed(r.number(r.PerHour)), fmt.Sprintf("%+.2f", r.Percent),
		signed(r.number(r.Least)) + " and " + signed(r.number(r.Most)), r.number(r.First), r.number(r.Last),
		fmt.Sprintf("%.1f", r.Hours), fmt.Sprint(r.Points)}
}

// number returns a value with the unit of its measure.
func (r Row) number(value float64) string {
	if !stats.InBytes(r.Measure) {
		return fmt.Sprintf("%.4g", value)
	}
	if value < 0 {
		return "-" + ui.Size(int64(-value))
	}
	return ui.Size(int64(value))
}

func signed(number string) string {
	if strings.HasPrefix(number, "-") {
		return number
	}
	return "+" + number
}
