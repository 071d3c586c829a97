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

// maxSkew is the maximum time by which a line may be past --until before reading stops, since
// logs are only nearly sorted.
const maxSkew = time.Minute

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

// picks reports whether lines are filtered on your machine.
func (o Options) picks() bool {
	return o.Grep != nil || o.Level != logline.Unknown || !o.Until.IsZero()
}

// lines converts a file's bytes to records.
type lines struct {
	file    File
	options Options
	zone    *time.Location // the node's time zone

	rest     []byte            // the beginning of a line whose end has not arrived
	pieces   map[string][]byte // the pieces of a container's unfinished lines, by stream
	time     time.Time         // the time of the latest line that has a time
	level    logline.Level
	keep     ring // the last matching lines, kept until caughtUp is set
	caughtUp bool // reports whether all stored lines have arrived
	// verbatim reports whether lines can be passed on unparsed; nil: never.
	verbatim func() bool
}

// everyLine, as a number of last lines, means all lines.
const everyLine = -1

// newLines returns a converter that keeps the last matching lines until all stored lines have
// arrived.
func newLines(file File, o Options, last int) *lines {
	l := &lines{file: file, options: o, zone: time.UTC, pieces: map[string][]byte{}}
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
	switch r.GetEvent() {
	case agentv1.TailEvent_TAIL_EVENT_NONE:
	case agentv1.TailEvent_TAIL_EVENT_END:
		if err := in.Send(ctx, append(l.unfinished(), l.release()...)); err != nil {
			return err
		}
		in.CaughtUp(ctx)
	default: // Another file follows, or the file begins again: the unfinished last line ends.
		if err := in.Send(ctx, l.cut()); err != nil {
			return err
		}
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
	if len(data) == 0 || l.verbatim == nil || !l.verbatim() || len(l.pieces) > 0 {
		return false
	}
	first, _, _ := bytes.Cut(data, []byte("\n"))
	return len(first) <= maxLine && logline.Parse(first, time.Now()).Format != logline.CRI
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
	now := time.Now().In(l.zone)
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			l.rest = append(l.rest, data...)
			if len(l.rest) > maxLine {
				records = l.line(records, l.rest, now)
				l.rest = l.rest[:0]
			}
			return records, nil
		}
		line := data[:end]
		if len(l.rest) > 0 {
			line = append(l.rest, line...)
			l.rest = l.rest[:0]
		}
		records = l.line(records, line, now)
		data = data[end+1:]
		if l.passes(data) {
			return append(records, l.whole(data)...), nil
		}
		if until := l.options.Until; !until.IsZero() && l.time.Sub(until) > maxSkew {
			return append(records, l.release()...), errPast
		}
	}
	return records, nil
}

// cut returns the record of the unfinished last line, as if the line ended here.
func (l *lines) cut() (records []Record) {
	if len(l.rest) > 0 {
		records = l.line(nil, l.rest, time.Now().In(l.zone))
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
			records = l.add(records, fromPieces(held, stream))
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
func (l *lines) release() []Record {
	l.caughtUp = true
	return l.keep.take()
}

// line appends the record of a line if it is wanted. A line without time or level, such as a
// line of a stack trace, gets the time and level of the line before it.
func (l *lines) line(to []Record, text []byte, now time.Time) []Record {
	if l.skips(text) {
		return to
	}
	parsed := logline.Parse(text, now)
	if !parsed.Time.IsZero() {
		l.time, l.level = parsed.Time, parsed.Level
	}
	if parsed.Level == logline.Unknown {
		parsed.Level = l.level
	}
	held := l.pieces[parsed.Stream]
	if parsed.Partial && len(held) < maxLine {
		l.pieces[parsed.Stream] = append(held, parsed.Text...)
		return to
	}
	if len(held) > 0 {
		delete(l.pieces, parsed.Stream)
		parsed = fromPieces(append(held, parsed.Text...), parsed.Stream)
	}
	return l.add(to, parsed)
}

// fromPieces returns a container's line that arrived in pieces, with the level of the whole
// line.
func fromPieces(text []byte, stream string) logline.Line {
	return logline.Line{Level: logline.Parse(text, time.Now()).Level, Stream: stream, Text: string(text)}
}

// add appends the record of a whole line if it is wanted.
func (l *lines) add(to []Record, line logline.Line) []Record {
	r := Record{
		Time: l.time, Node: l.file.Node, Source: l.file.Source, File: l.file.Path,
		Level: line.Level, Stream: line.Stream, Text: line.Text,
	}
	switch {
	case !l.options.wants(r):
		return to
	case l.caughtUp:
		return append(to, r)
	}
	l.keep.add(r)
	return to
}

// skips reports whether a line can be skipped because its text does not match. It returns
// false if lines are also filtered by time or level. It returns false for a container's line
// too, since the next line may continue it.
func (l *lines) skips(text []byte) bool {
	o := l.options
	if o.Grep == nil || o.Level != logline.Unknown || !o.Since.IsZero() || !o.Until.IsZero() || len(l.pieces) > 0 {
		return false
	}
	return !o.Grep.matchBytes(text) && !logline.IsCRI(text)
}

// wants reports whether the options select a record.
func (o Options) wants(r Record) bool {
	switch {
	case !o.Since.IsZero() && !r.Time.IsZero() && r.Time.Before(o.Since),
		!o.Until.IsZero() && r.Time.After(o.Until),
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
