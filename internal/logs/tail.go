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
	"github.com/swdt-dev/swdt/internal/logline"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Tailer reads logs on a node: its Files client.
type Tailer interface {
	Tail(context.Context, *agentv1.TailRequest, ...grpc.CallOption) (grpc.ServerStreamingClient[agentv1.TailReply], error)
}

// File is one file of a source.
type File struct {
	Node   string
	Source string // as records name it
	Path   string // on the node
}

// What a TailReply's event says: see package agent.
const (
	tailStands = "end"
	tailLost   = "lost"
)

// maxLine is where a line without an end is cut, bytes.
const maxLine = 1 << 20

// overdue is how much later than until a line must be for the rest not to be
// read: lines stand nearly in order.
const overdue = time.Minute

// errPast: the rest of the log is later than what is wanted.
var errPast = errors.New("past the end")

// tail is one file that is read, over as many connections as it takes.
type tail struct {
	lines *lines
	in    *Input
	tell  ui.Reporter
	place *agentv1.TailPlace // behind what has come; nil: nothing has
	owns  func(*agentv1.TailPlace) bool
	known func() []*agentv1.TailPlace // logs that this one may be a copy of; nil: of none
}

// read sends the file's lines to the merger until the file ends, or while it is
// followed until ctx does, or until the file is one that is read under another
// name. After an error it goes on where it was.
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
			return err // the agent has said what was attempted
		}
		if place := reply.GetPlace(); place != nil && !t.owns(place) {
			return nil
		}
		if reply.GetEvent() == tailLost {
			t.tell.Warn("%s was replaced while there was no connection, and is gone: what it had at its end is not shown", t.lines.file.Path)
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

// request asks the node for no more than what is needed: but the last lines of
// those that match are known only here. So is whether a container's line matches: it
// may come in pieces, of which only one has the word. The node recognises such lines
// in any file; for pods it need not look.
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

// last is how many lines are kept here: the node knows which are the last, but not
// of those that match.
func (o Options) last() int {
	if o.picks() {
		return o.Tail
	}
	return everyLine
}

// picks is whether lines are left out here.
func (o Options) picks() bool {
	return o.Grep != nil || o.Level != logline.Unknown || !o.Until.IsZero()
}

// lines makes records of a file's bytes.
type lines struct {
	file    File
	options Options
	zone    *time.Location // of the node

	rest   []byte            // of a line whose end is not here
	pieces map[string][]byte // of a container's lines that go on, by stream
	time   time.Time         // of the latest line that has one
	level  logline.Level
	keep   ring // the last lines that match, until the log stands
	stood  bool
	// verbatim is whether nobody needs to look at the lines; nil: somebody does.
	verbatim func() bool
}

// everyLine is a number of last lines.
const everyLine = -1

// newLines keeps the last lines of those that match until the log stands.
func newLines(file File, o Options, last int) *lines {
	l := &lines{file: file, options: o, zone: time.UTC, pieces: map[string][]byte{}}
	if last >= 0 {
		l.keep.size = last
	} else {
		l.stood = true
	}
	return l
}

func (l *lines) reply(ctx context.Context, r *agentv1.TailReply, in *Input) error {
	if r.GetUtcOffset() != 0 {
		l.zone = time.FixedZone("node", int(r.GetUtcOffset()))
	}
	switch r.GetEvent() {
	case "":
	case tailStands:
		if err := in.Send(ctx, append(l.unfinished(), l.release()...)); err != nil {
			return err
		}
		in.CaughtUp(ctx)
	default: // another file, or it begins anew: a line does not go on in it
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

// passes is whether lines go through as they are. Those of containers have to be
// taken out of what their runtime wraps them in.
func (l *lines) passes(data []byte) bool {
	if len(data) == 0 || l.verbatim == nil || !l.verbatim() || len(l.pieces) > 0 {
		return false
	}
	first, _, _ := bytes.Cut(data, []byte("\n"))
	return len(first) <= maxLine && logline.Parse(first, time.Now()).Format != logline.CRI
}

// whole takes the lines that have an end, and keeps the rest for the next ones.
func (l *lines) whole(data []byte) []Record {
	end := bytes.LastIndexByte(data, '\n') + 1
	l.rest = append(l.rest, data[end:]...)
	if end == 0 {
		return nil
	}
	return []Record{{Node: l.file.Node, Source: l.file.Source, File: l.file.Path, Raw: data[:end]}}
}

// split cuts what came into lines.
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
		if until := l.options.Until; !until.IsZero() && l.time.Sub(until) > overdue {
			return append(records, l.release()...), errPast
		}
	}
	return records, nil
}

// cut ends a line that has no end.
func (l *lines) cut() (records []Record) {
	if len(l.rest) > 0 {
		records = l.line(nil, l.rest, time.Now().In(l.zone))
		l.rest = l.rest[:0]
	}
	return records
}

// unfinished ends a container's lines that go on nowhere: a runtime writes so the
// last line of a container that ended without a newline.
func (l *lines) unfinished() (records []Record) {
	for _, stream := range []string{"stdout", "stderr"} {
		if held, ok := l.pieces[stream]; ok {
			delete(l.pieces, stream)
			records = l.add(records, fromPieces(held, stream))
		}
	}
	return records
}

// end ends the log.
func (l *lines) end() []Record {
	return append(append(l.cut(), l.unfinished()...), l.release()...)
}

// release gives the last lines, once it is known that they are.
func (l *lines) release() []Record {
	l.stood = true
	return l.keep.take()
}

// line appends a line's record where the line is wanted. One that says neither
// time nor level, such as of a stack trace, goes with the one before it.
func (l *lines) line(to []Record, text []byte, now time.Time) []Record {
	if l.isNotWanted(text) {
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

// fromPieces is a container's line that came in pieces. Its level is no piece's.
func fromPieces(text []byte, stream string) logline.Line {
	return logline.Line{Level: logline.Parse(text, time.Now()).Level, Stream: stream, Text: string(text)}
}

// add appends the record of a whole line where it is wanted.
func (l *lines) add(to []Record, line logline.Line) []Record {
	r := Record{
		Time: l.time, Node: l.file.Node, Source: l.file.Source, File: l.file.Path,
		Level: line.Level, Stream: line.Stream, Text: line.Text,
	}
	switch {
	case !l.options.wants(r):
		return to
	case l.stood:
		return append(to, r)
	}
	l.keep.add(r)
	return to
}

// isNotWanted is whether a line's text alone leaves it out: it does not match, and
// neither its time nor its level was asked for. A container's line may go on in the
// next one.
func (l *lines) isNotWanted(text []byte) bool {
	o := l.options
	if o.Grep == nil || o.Level != logline.Unknown || !o.Since.IsZero() || !o.Until.IsZero() || len(l.pieces) > 0 {
		return false
	}
	return !o.Grep.matchBytes(text) && !logline.IsCRI(text)
}

// wants is whether a record is one of those asked for.
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
