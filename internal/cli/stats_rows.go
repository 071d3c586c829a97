package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/stats"
	"github.com/swdt-dev/swdt/internal/ui"
)

// statsPrinter shows rows as they come.
type statsPrinter interface {
	rows(stats.Reading, []stats.Row) error
	end() error
}

func (a *app) statsPrinter(o statsWatchOptions) statsPrinter {
	switch {
	case a.format() == formatCSV:
		return &csvRows{out: csv.NewWriter(a.streams.Out)}
	case !a.inText():
		return &recordRows{a.records(a.streams.Out)}
	case a.canDraw(a.streams.Out):
		return newStatsTable(a.streams.Out, o.choice.sort)
	}
	return &textRows{out: a.page(), callers: o.callers > 0}
}

// statsRow is a sample for tools. Numbers that are not there are null.
type statsRow struct {
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

func newStatsRow(r stats.Row) statsRow {
	c := r.Key.Container
	row := statsRow{
		Time: r.Point.Received, Node: c.Node, Source: r.Key.Source, Caller: r.Key.Caller, Namespace: c.Namespace, Pod: c.Pod,
		Container: c.Name, ID: c.ID, Computed: r.Computed, Counter: r.Point.Counter, Memory: r.Point.Memory, Taken: r.Point.Taken,
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

type recordRows struct{ records *records }

func (p *recordRows) rows(_ stats.Reading, rows []stats.Row) error {
	for _, r := range rows {
		if err := p.records.write(newStatsRow(r)); err != nil {
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
		header := []string{"time", "node", "source", "caller", "namespace", "pod", "container", "id", "reportedCores", "computedCores",
			"usageCoreNanoSeconds", "workingSetBytes", "taken", "verdicts"}
		if err := p.out.Write(header); err != nil {
			return err
		}
	}
	for _, r := range rows {
		row := newStatsRow(r)
		fields := []string{row.Time.Format(time.RFC3339Nano), row.Node, string(row.Source), strconv.Itoa(row.Caller), row.Namespace, row.Pod,
			row.Container, row.ID, orEmpty(row.Reported), orEmpty(row.Computed), orEmpty(row.Counter), orEmpty(row.Memory),
			row.Taken.Format(time.RFC3339Nano), strings.Join(names(row.Verdicts), " ")}
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

// textRows are a line for each sample.
type textRows struct {
	out     io.Writer
	callers bool // say who asked
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
		fmt.Fprintf(&b, "%s  %-7s  %-*s  reported %6s  computed %6s  %6s  %8s  age %s  %s\n", r.Received.Format("15:04:05.000"),
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
		return "-" // nothing to compare with yet, or ever
	case len(r.Verdicts) == 0:
		return "ok"
	}
	return strings.Join(names(r.Verdicts), " ")
}
