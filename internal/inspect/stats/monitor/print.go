package monitor

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/livetable"
)

// Printer prints rows as they arrive.
type Printer interface {
	rows(stats.Reading, []stats.Row) error
	end() error
}

// NewTable returns a live table on a terminal. sort is the name of the column (see
// Columns) by which the table is sorted, unless keys choose another column.
func NewTable(out io.Writer, sort string, keys *livetable.Keys) Printer {
	t := newTable(out, sort)
	t.keys = keys
	return t
}

// NewRecords returns a printer that calls write for each sample.
func NewRecords(write func(Sample) error) Printer { return &recordRows{write} }

// NewCSV returns a printer of comma-separated values with a header.
func NewCSV(out io.Writer) Printer { return &csvRows{out: csv.NewWriter(out)} }

// NewLines returns a printer that prints one line for each sample. If callers is true,
// the line names the caller.
func NewLines(out io.Writer, callers bool) Printer { return &textRows{out: out, callers: callers} }

// Sample is a record of `swdt stats watch`. Missing numbers are null.
type Sample struct {
	Time      time.Time       `json:"time"`
	Node      string          `json:"node"`
	Source    stats.Source    `json:"source"`
	Caller    int             `json:"caller"`
	Namespace string          `json:"namespace"`
	Pod       string          `json:"pod"`
	Container string          `json:"container"`
	ID        string          `json:"id"`
	Reported  *float64        `json:"reportedCores"`
	Computed  *float64        `json:"computedCores"`
	Counter   *uint64         `json:"usageCoreNanoSeconds"`
	Memory    *uint64         `json:"workingSetBytes"`
	Taken     time.Time       `json:"taken"`
	Verdicts  []stats.Verdict `json:"verdicts"`
}

func newSample(r stats.Row) Sample {
	c := r.Key.Container
	row := Sample{
		Time: r.Point.Received, Node: c.Node, Source: r.Key.Source, Caller: r.Key.Caller, Namespace: c.Namespace,
		Pod:       c.Pod,
		Container: c.Name, ID: c.ID, Computed: r.Computed, Counter: r.Point.Counter, Memory: r.Point.Memory,
		Taken:    r.Point.Taken,
		Verdicts: r.Verdicts,
	}
	if r.Verdicts == nil {
		row.Verdicts = []stats.Verdict{}
	}
	if r.Point.Reported != nil {
		cores := stats.Cores(*r.Point.Reported)
		row.Reported = &cores
	}
	return row
}

type recordRows struct{ write func(Sample) error }

func (p *recordRows) rows(_ stats.Reading, rows []stats.Row) error {
	for _, r := range rows {
		if err := p.write(newSample(r)); err != nil {
			return err
		}
	}
	return nil
}

func (p *recordRows) end() error { return nil }

type csvRows struct {
	out   *csv.Writer
	begun bool
}

func (p *csvRows) rows(_ stats.Reading, rows []stats.Row) error {
	if !p.begun {
		p.begun = true
		header := []string{"time", "node", "source", "caller", "namespace", "pod", "container", "id", "reportedCores",
			"computedCores",
			"usageCoreNanoSeconds", "workingSetBytes", "taken", "verdicts"}
		if err := p.out.Write(header); err != nil {
			return err
		}
	}
	for _, r := range rows {
		row := newSample(r)
		fields := []string{row.Time.Format(time.RFC3339Nano), row.Node, string(row.Source), strconv.Itoa(row.Caller),
			row.Namespace, row.Pod,
			row.Container, row.ID, orEmpty(row.Reported), orEmpty(row.Computed), orEmpty(row.Counter),
			orEmpty(row.Memory),
			row.Taken.Format(time.RFC3339Nano), strings.Join(stats.VerdictNames(row.Verdicts), " ")}
		if err := p.out.Write(fields); err != nil {
			return err
		}
	}
	p.out.Flush()
	return p.out.Error()
}

func (p *csvRows) end() error {
	p.out.Flush()
	return p.out.Error()
}

func orEmpty[T float64 | uint64](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

// textRows prints a line for each sample.
type textRows struct {
	out     io.Writer
	callers bool // reports whether to print the caller of each sample
	widest  int
}

func (p *textRows) rows(r stats.Reading, rows []stats.Row) error {
	var b strings.Builder
	for _, row := range rows {
		who := string(row.Key.Source)
		if p.callers {
			who += fmt.Sprintf(" #%d", row.Key.Caller+1)
		}
		path := row.Key.Container.Path()
		p.widest = max(p.widest, len(path))
		fmt.Fprintf(&b, "%s  %-7s  %-*s  reported %6s  computed %6s  %6s  %8s  age %s  %s\n",
			r.Received.Format("15:04:05.000"),
			who, p.widest, path, reported(row), computed(row), difference(row), memory(row), age(row), verdict(row))
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}

func (p *textRows) end() error { return nil }

func reported(r stats.Row) string {
	if r.Point.Reported == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", stats.Cores(*r.Point.Reported))
}

func computed(r stats.Row) string {
	if r.Computed == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *r.Computed)
}

func difference(r stats.Row) string {
	d, ok := r.Difference()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%+.0f%%", 100*d)
}

func memory(r stats.Row) string {
	if r.Point.Memory == nil {
		return "-"
	}
	return ui.Size(int64(*r.Point.Memory))
}

func age(r stats.Row) string { return ui.Seconds(max(0, r.Age)) }

func verdict(r stats.Row) string {
	switch {
	case len(r.Verdicts) == 0 && (r.Computed == nil || r.Key.Source == stats.Node):
		return "-" // there is no computed rate yet, or the source reports no rates
	case len(r.Verdicts) == 0:
		return "ok"
	}
	return strings.Join(stats.VerdictNames(r.Verdicts), " ")
}
