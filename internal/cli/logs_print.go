package cli

import (
	"bufio"
	"hash/fnv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/events"
	"github.com/swdt-dev/swdt/internal/logline"
	"github.com/swdt-dev/swdt/internal/logs"
	"github.com/swdt-dev/swdt/internal/ui"
)

// logPrinter writes records to stdout.
type logPrinter struct {
	out        *bufio.Writer
	story      *ui.Story
	records    *records // nil: text
	colour     bool
	timestamps bool
	nodes      bool // the node's name before each line
	sources    bool
	printed    bool // there was something
}

func (a *app) logPrinter(s *session, o logs.Options, timestamps bool) *logPrinter {
	p := &logPrinter{
		// Raw, for colours; all else is printable.
		out: bufio.NewWriterSize(ui.Raw(a.streams.Out), 64<<10), story: s.story, timestamps: timestamps,
		colour: a.hasColour(a.streams.Out),
		nodes:  len(s.documents) > 1, sources: len(o.Sources) != 1 || strings.Contains(o.Sources[0], "*"),
	}
	if !a.inText() {
		p.out.Reset(a.streams.Out)
		p.records = a.records(p.out)
	}
	return p
}

// Record implements logs.Sink.
func (p *logPrinter) Record(r logs.Record) error {
	p.printed = true
	if p.records != nil {
		return p.line(r)
	}
	if r.Raw != nil {
		return p.raw(r.Raw)
	}
	var prefix []string
	if p.nodes {
		prefix = append(prefix, p.painted(r.Node))
	}
	if p.sources {
		prefix = append(prefix, p.painted(r.Source))
	}
	if len(prefix) > 0 {
		p.out.WriteString(strings.Join(prefix, " ") + " | ")
	}
	if p.timestamps || r.Event != nil {
		p.out.WriteString(stamp(r.Time) + " ")
	}
	if r.Event != nil {
		p.out.WriteString(strings.ToUpper(r.Level.String()) + " ")
	}
	p.out.WriteString(p.byLevel(r.Level, ui.PrintableLines(r.Text)))
	return p.out.WriteByte('\n')
}

// Flush implements logs.Sink: nothing more comes for now.
func (p *logPrinter) Flush() error {
	var err error
	p.story.Suspend(func() { err = p.out.Flush() })
	return err
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// recordLine is a record for tools.
type recordLine struct {
	Time     string         `json:"time,omitempty"`
	Node     string         `json:"node"`
	Source   string         `json:"source"`
	File     string         `json:"file,omitempty"`
	Stream   string         `json:"stream,omitempty"`
	Level    string         `json:"level,omitempty"`
	Text     string         `json:"text,omitempty"`
	Channel  string         `json:"channel,omitempty"`
	Provider string         `json:"provider,omitempty"`
	ID       int            `json:"id,omitempty"`
	Record   uint64         `json:"record,omitempty"`
	Computer string         `json:"computer,omitempty"`
	Process  int            `json:"pid,omitempty"`
	Message  string         `json:"message,omitempty"`
	Data     []events.Datum `json:"data,omitempty"`
}

func (p *logPrinter) line(r logs.Record) error {
	l := recordLine{Node: r.Node, Source: r.Source, File: r.File, Stream: r.Stream, Level: r.Level.String(), Text: r.Text}
	if !r.Time.IsZero() {
		l.Time = r.Time.UTC().Format(time.RFC3339Nano)
	}
	if e := r.Event; e != nil {
		l.Text = ""
		l.Channel, l.Provider, l.ID, l.Record = e.Channel, e.Provider, e.ID, e.Record
		l.Computer, l.Process, l.Message, l.Data = e.Computer, e.Process, e.Message, e.Data
	}
	return p.records.write(l)
}

// painted gives each name a colour of its own, the same each time.
func (p *logPrinter) painted(name string) string {
	text := ui.Printable(name)
	if !p.colour {
		return text
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	colours := []string{"36", "32", "35", "34", "96", "92", "95", "94"} // none that means good or bad
	return "\x1b[" + colours[h.Sum32()%uint32(len(colours))] + "m" + text + "\x1b[0m"
}

func (p *logPrinter) byLevel(level logline.Level, text string) string {
	if !p.colour || level < logline.Warning {
		return text
	}
	colour := "33"
	if level >= logline.Error {
		colour = "31"
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
