package logs

import (
	"bufio"
	"hash/fnv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/inspect/events"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Printer is a Sink that writes records to stdout, as lines for people or as records for
// tools.
type Printer struct {
	out     *bufio.Writer
	options PrintOptions
	printed bool // reports whether there was a record
}

// PrintOptions configure a Printer.
type PrintOptions struct {
	Write      func(Line) error // writes a record to the writer of NewPrinter; nil: records are printed as text
	Story      *ui.Story        // the story to suspend while lines are printed
	Colour     bool
	Timestamps bool
	Nodes      bool // reports whether the node's name is before each line
	Sources    bool // reports whether the source's name is before each line
}

// NewPrinter returns a Printer that writes to out, and flushes out.
func NewPrinter(out *bufio.Writer, o PrintOptions) *Printer { return &Printer{out: out, options: o} }

// Verbatim reports whether lines can be printed without parsing them, since the output has
// only the text of the lines of a single log.
func (p *Printer) Verbatim() bool {
	o := p.options
	return o.Write == nil && !o.Colour && !o.Timestamps && !o.Nodes && !o.Sources
}

// Printed reports whether there was a record.
func (p *Printer) Printed() bool { return p.printed }

// Record implements Sink.
func (p *Printer) Record(r Record) error {
	p.printed = true
	if p.options.Write != nil {
		return p.line(r)
	}
	if r.Raw != nil {
		return p.whole(r.Raw)
	}
	var prefix []string
	if p.options.Nodes {
		prefix = append(prefix, p.painted(r.Node))
	}
	if p.options.Sources {
		prefix = append(prefix, p.painted(r.Source))
	}
	if len(prefix) > 0 {
		p.out.WriteString(strings.Join(prefix, " ") + " | ")
	}
	if p.options.Timestamps || r.Event != nil {
		p.out.WriteString(stamp(r.Time) + " ")
	}
	if r.Event != nil {
		p.out.WriteString(strings.ToUpper(r.Level.String()) + " ")
	}
	p.out.WriteString(p.byLevel(r.Level, ui.PrintableLines(r.Text)))
	return p.out.WriteByte('\n')
}

// Flush implements Sink. It writes the lines that were printed so far.
func (p *Printer) Flush() error {
	var err error
	p.options.Story.Suspend(func() { err = p.out.Flush() })
	return err
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Line is a record in the form that is printed for tools.
type Line struct {
	Time     string         `json:"time"`
	Node     string         `json:"node"`
	Source   string         `json:"source"`
	File     string         `json:"file"`
	Stream   string         `json:"stream"`
	Level    string         `json:"level"`
	Text     string         `json:"text"`
	Channel  string         `json:"channel"`
	Provider string         `json:"provider"`
	ID       int            `json:"id"`
	Record   uint64         `json:"record"`
	Computer string         `json:"computer"`
	Process  int            `json:"pid"`
	Message  string         `json:"message"`
	Data     []events.Datum `json:"data"`
}

func (p *Printer) line(r Record) error {
	l := Line{Node: r.Node, Source: r.Source, File: r.File, Stream: r.Stream, Level: r.Level.String(), Text: r.Text}
	if !r.Time.IsZero() {
		l.Time = r.Time.UTC().Format(time.RFC3339Nano)
	}
	if e := r.Event; e != nil {
		l.Text = ""
		l.Channel, l.Provider, l.ID, l.Record = e.Channel, e.Provider, e.ID, e.Record
		l.Computer, l.Process, l.Message, l.Data = e.Computer, e.Process, e.Message, e.Data
	}
	return p.options.Write(l)
}

// painted returns a name in a colour that depends only on the name.
func (p *Printer) painted(name string) string {
	text := ui.Printable(name)
	if !p.options.Colour {
		return text
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	colours := []string{"36", "32", "35", "34", "96", "92", "95", "94"} // no red or yellow, which mark levels
	return "\x1b[" + colours[h.Sum32()%uint32(len(colours))] + "m" + text + "\x1b[0m"
}

func (p *Printer) byLevel(level logline.Level, text string) string {
	if !p.options.Colour || level < logline.Warning {
		return text
	}
	colour := "33"
	if level >= logline.Error {
		colour = "31"
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// whole prints a text that consists of whole lines. Nearly always the text is plain, and is then
// written in one piece.
func (p *Printer) whole(text []byte) error {
	shown := ui.NewPrintableWriter(p.out)
	if _, err := shown.Write(text); err != nil {
		return err
	}
	return shown.Flush()
}
