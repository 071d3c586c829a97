package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Tailer reads logs on a node. The node's Files client implements it.
type Tailer interface {
	Tail(context.Context, *agentv1.TailRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[agentv1.TailReply],
		error)
}

// File is one file of a source.
type File struct {
	Node   string
	Source string // the source of the file's records
	Path   string // on the node
}

// maxLine is the length in bytes at which a line without an end is cut.
const maxLine = 1 << 20

// errPast reports that the rest of the log is later than --until.
var errPast = errors.New("past --until")

// tail reads one file, over as many connections as necessary.
type tail struct {
	lines    *lines
	in       *Input
	reporter ui.Reporter
	place    *agentv1.TailPlace // the position up to which the file was read; nil: nothing was read
	owns     func(*agentv1.TailPlace) bool
	known    func() []*agentv1.TailPlace // positions in those logs of which this file may be a copy; nil: none
}

// read sends the file's lines to the merger. It returns at the end of the file or, if the
// file is followed, when ctx ends. It also returns if the file is already read under another
// name. If read is called again after an error, it continues at the position up to which the
// file was read.
func (t *tail) read(ctx context.Context, node Tailer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := request(t.lines.file, t.lines.options)
	if t.place != nil {
		r.From = t.place
	} else if t.known != nil {
		r.Copies = t.known()
	}
	stream, err := node.Tail(ctx, r)
	if err != nil {
		return fmt.Errorf("read %s: %w", t.lines.file.Path, err)
	}
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			t.lines.reportUntimed(t.reporter)
			return t.in.Send(ctx, t.lines.end())
		}
		if err != nil {
			return err // the agent's error names the attempted operation
		}
		if place := reply.GetPlace(); place != nil && !t.owns(place) {
			return nil
		}
		if reply.GetEvent() == agentv1.TailEvent_TAIL_EVENT_LOST {
			t.reporter.Warn("%s was replaced and removed while there was no connection: its last lines are missing",
				t.lines.file.Path)
		}
		if err := t.lines.reply(ctx, reply, t.in); err != nil {
			if errors.Is(err, errPast) {
				t.lines.reportUntimed(t.reporter)
				return nil
			}
			return err
		}
		if reply.GetPlace() != nil {
			t.place = reply.GetPlace()
		}
	}
}

// request returns the request for the file, with the filters that the node can apply. Only your
// machine can determine the last of the matching lines. Only your machine can also determine
// whether a container's line matches, since the line may be split into pieces, of which perhaps
// only one has the word. The node recognises containers' lines in any file and does not filter
// them. For the logs of pods, the request contains no words at all.
func request(file File, o Options) *agentv1.TailRequest {
	r := &agentv1.TailRequest{Path: file.Path, Lines: int64(o.Tail), Follow: o.Follow}
	if o.Tail < 0 || o.picks() {
		r.Lines = -1
	}
	if !o.Since.IsZero() {
		r.Since = timestamppb.New(o.Since)
	}
	if !strings.HasPrefix(file.Source, podPrefix) {
		r.Contains, r.IgnoreCase = o.Grep.Words()
	}
	return r
}

// last returns the number of last lines to keep on your machine, or everyLine. The node can
// return the last lines, but not the last matching lines.
func (o Options) last() int {
	if o.picks() {
		return o.Tail
	}
	return everyLine
}

// hasTime reports whether lines are filtered by time.
func (o Options) hasTime() bool { return !o.Since.IsZero() || !o.Until.IsZero() }

// picks reports whether lines are filtered on your machine.
func (o Options) picks() bool {
	return o.Grep != nil || o.Level != logline.Unknown || o.hasTime()
}

// lines converts a file's bytes to records.
type lines struct {
	file    File
	options Options
	zone    *time.Location // the node's time zone

	reader   logline.Reader
	written  time.Time         // what the year of the stored lines without a year is counted from; zero: now
	rest     []byte            // the beginning of a line whose end has not arrived
	isCut    bool              // the line in rest began before rest
	pieces   map[string]pieces // the pieces of a container's unfinished lines, by stream
	late     int               // the number of successive lines so far that are later than Until
	untimed  int               // the number of lines without a time of their own
	early    []Record          // lines before the first that has a time, if it is not known yet whether they are wanted
	isTimed  bool              // a line with a time has arrived
	keep     ring              // the last matching lines, kept until caughtUp is set
	caughtUp bool              // reports whether all stored lines have arrived
	// verbatim reports whether lines can be passed on unparsed; nil: never.
	verbatim func() bool
}

// everyLine, as a number of last lines, means all lines.
const everyLine = -1

// newLines returns a converter that keeps the last matching lines until all stored lines have
// arrived.
func newLines(file File, o Options, last int) *lines {
	l := &lines{file: file, options: o, zone: time.UTC, pieces: map[string]pieces{}}
	if last >= 0 {
		l.keep.size = last
	} else {
		l.caughtUp = true
	}
	return l
}

func (l *lines) reply(ctx context.Context, r *agentv1.TailReply, in *Input) error {
	if r.GetUtcOffset() != 0 {
		l.zone = time.FixedZone("node", int(r.GetUtcOffset()))
	}
	if r.GetWritten() != nil {
		l.written = r.GetWritten().AsTime()
	}
	switch r.GetEvent() {
	case agentv1.TailEvent_TAIL_EVENT_NONE:
	case agentv1.TailEvent_TAIL_EVENT_END:
		if err := in.Send(ctx, append(l.unfinished(), l.release()...)); err != nil {
			return err
		}
		l.written = time.Time{}
		in.CaughtUp(ctx)
	default: // Another file follows, or the file begins again: the unfinished last line ends.
		if err := in.Send(ctx, l.cut()); err != nil {
			return err
		}
		l.written, l.isCut = time.Time{}, false
	}
	if len(l.rest) == 0 && l.passes(r.GetData()) {
		return in.Send(ctx, l.whole(r.GetData()))
	}
	records, err := l.split(r.GetData())
	return errors.Join(in.Send(ctx, records), err)
}

// passes reports whether data can be passed on without parsing its lines. The lines of
// containers must be parsed, since the container runtime adds a prefix to each line.
func (l *lines) passes(data []byte) bool {
	if len(data) == 0 || l.verbatim == nil || !l.verbatim() || len(l.pieces) > 0 || bytes.IndexByte(data, 0) >= 0 {
		return false
	}
	first, _, _ := bytes.Cut(data, []byte("\n"))
	return len(first) <= maxLine && !logline.IsCRI(first)
}

// whole returns the complete lines, and keeps the rest for the next call.
func (l *lines) whole(data []byte) []Record {
	end := bytes.LastIndexByte(data, '\n') + 1
	l.rest = append(l.rest, data[end:]...)
	if end == 0 {
		return nil
	}
	return []Record{{Node: l.file.Node, Source: l.file.Source, File: l.file.Path, Raw: data[:end]}}
}

// split splits data into lines and returns their records, or errPast.
func (l *lines) split(data []byte) (records []Record, err error) {
	l.reader.Written = l.written.In(l.zone)
	if l.written.IsZero() {
		l.reader.Written = time.Now().In(l.zone)
	}
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			l.rest = append(l.rest, data...)
			if len(l.rest) > maxLine {
				records = l.line(records, l.rest)
				l.isCut = !bytes.HasSuffix(l.rest, []byte{0, 0}) // a run of NUL ends a line
				l.rest = l.rest[:0]
			}
			return records, nil
		}
		line := data[:end]
		if len(l.rest) > 0 {
			line = append(l.rest, line...)
			l.rest = l.rest[:0]
		}
		records = l.line(records, line)
		l.isCut = false
		data = data[end+1:]
		if l.passes(data) {
			return append(records, l.whole(data)...), nil
		}
		if l.late >= logline.Run {
			return append(records, l.release()...), errPast
		}
	}
	return records, nil
}

// cut returns the record of the unfinished last line, as if the line ended here.
func (l *lines) cut() (records []Record) {
	if len(l.rest) > 0 {
		records = l.line(nil, l.rest)
		l.rest = l.rest[:0]
	}
	return records
}

// unfinished returns the records of a container's lines of which only the first pieces have
// arrived. If the last output of a container has no newline, the runtime writes this output
// as a first piece that no last piece follows.
func (l *lines) unfinished() (records []Record) {
	for _, stream := range []string{"stdout", "stderr"} {
		if held, ok := l.pieces[stream]; ok {
			delete(l.pieces, stream)
			records = l.add(records, l.record(held.joined(l.reader.Written)))
		}
	}
	return records
}

// end returns the remaining records of a log that has ended.
func (l *lines) end() []Record {
	return append(append(l.cut(), l.unfinished()...), l.release()...)
}

// release returns the records of the last matching lines, after all stored lines have
// arrived.
func (l *lines) release() (records []Record) {
	records = l.waited(nil)
	l.caughtUp = true
	return append(records, l.keep.take()...)
}

// waited appends the records of the lines that waited for the first time in the log.
func (l *lines) waited(to []Record) []Record {
	for _, r := range l.early {
		to = l.add(to, r)
	}
	l.early = nil
	return to
}

// line appends the records of a line that are wanted. A run of NUL divides a line.
func (l *lines) line(to []Record, raw []byte) []Record {
	isFragment := l.isCut
	logline.EachText(raw, func(text []byte) {
		var line logline.Read
		if isFragment {
			line = l.reader.Fragment(text)
		} else {
			line = l.reader.Line(text)
		}
		isFragment = false
		to = l.count(to, line)
		to = l.piece(to, line)
	})
	return to
}

// count counts a line for the end of the reading by time. It appends the records of the lines before the first one with a
// time when that arrives, if they are wanted: they are not later than it.
func (l *lines) count(to []Record, line logline.Read) []Record {
	switch {
	case !line.IsHead:
		if strings.TrimSpace(line.Text) != "" {
			l.untimed++
		}
		return to
	case l.options.isLate(line.Time):
		l.late++
	default:
		l.late = 0
	}
	if line.Time.Before(l.options.Since) {
		l.early = nil
	}
	l.isTimed = true
	return l.waited(to)
}

// reportUntimed reports how many lines have no time of their own, if lines are filtered by time.
func (l *lines) reportUntimed(r ui.Reporter) {
	switch {
	case !l.options.ReportUntimed || !l.options.hasTime() || l.untimed == 0:
	case l.reader.HasTime():
		r.Warn("%s: lines without a time: %d; --since and --until count each to the line before it", l.file.Path, l.untimed)
	default:
		r.Warn("%s: lines without a time: %d, which is all; --since and --until cannot select among them", l.file.Path,
			l.untimed)
	}
}

// piece joins the pieces of a container's line, and appends its record if it is wanted.
func (l *lines) piece(to []Record, line logline.Read) []Record {
	held := l.pieces[line.Stream]
	if line.Partial && len(held.text) < maxLine {
		l.pieces[line.Stream] = pieces{text: append(held.text, line.Text...), last: line}
		return to
	}
	if len(held.text) > 0 {
		delete(l.pieces, line.Stream)
		line = pieces{text: append(held.text, line.Text...), last: line}.joined(l.reader.Written)
	}
	r := l.record(line)
	if r.Time.IsZero() && !l.options.Since.IsZero() && !l.isTimed {
		if l.early = append(l.early, r); len(l.early) < maxEarly {
			return to
		}
		l.isTimed = true // or as good as
		return l.waited(to)
	}
	return l.add(to, r)
}

// pieces are the first pieces of a container's line.
type pieces struct {
	text []byte
	last logline.Read
}

// joined returns the whole line. Its level is that of the whole text.
func (p pieces) joined(written time.Time) logline.Read {
	line := p.last
	line.Text = string(p.text)
	if level := logline.Parse(p.text, written).Level; level != logline.Unknown {
		line.Level = level
	}
	return line
}

// maxEarly is the maximum number of lines that wait for the first time in a log.
const maxEarly = 1000

func (l *lines) record(line logline.Read) Record {
	return Record{
		Time: line.Time, Node: l.file.Node, Source: l.file.Source, File: l.file.Path,
		Level: line.Level, Stream: line.Stream, Text: line.Text,
	}
}

// add appends a record if it is wanted.
func (l *lines) add(to []Record, r Record) []Record {
	switch {
	case !l.options.wants(r):
		return to
	case l.caughtUp:
		return append(to, r)
	}
	l.keep.add(r)
	return to
}

// isLate reports whether a time is after Until.
func (o Options) isLate(t time.Time) bool { return !o.Until.IsZero() && t.After(o.Until) }

// wants reports whether the options select a record.
func (o Options) wants(r Record) bool {
	switch {
	case !o.Since.IsZero() && !r.Time.IsZero() && r.Time.Before(o.Since),
		o.isLate(r.Time),
		o.Level != logline.Unknown && r.Level < o.Level:
		return false
	}
	return o.Grep.Match(r.Text)
}

// ring keeps the last records.
type ring struct {
	size    int
	records []Record
	next    int
}

func (r *ring) add(record Record) {
	switch {
	case r.size == 0:
	case len(r.records) < r.size:
		r.records = append(r.records, record)
	default:
		r.records[r.next] = record
		r.next = (r.next + 1) % r.size
	}
}

func (r *ring) take() []Record {
	ordered := append(r.records[r.next:len(r.records):len(r.records)], r.records[:r.next]...)
	*r = ring{size: r.size}
	return ordered
}
