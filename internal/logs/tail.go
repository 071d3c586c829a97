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
const tailStands = "end"

// maxLine is where a line without an end is cut, bytes.
const maxLine = 1 << 20

// overdue is how much later than until a line must be for the rest not to be
// read: lines stand nearly in order.
const overdue = time.Minute

// errPast: the rest of the log is later than what is wanted.
var errPast = errors.New("past the end")

// Tail sends a file's lines to the merger until the file ends, or while it is
// followed until ctx does.
func Tail(ctx context.Context, node Tailer, file File, o Options, in *Input) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := node.Tail(ctx, request(file, o))
	if err != nil {
		return fmt.Errorf("read %s: %w", file.Path, err)
	}
	l := newLines(file, o)
	for {
		reply, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return in.Send(ctx, l.end())
		}
		if err != nil {
			return err // the agent has said what was attempted
		}
		if err := l.reply(ctx, reply, in); err != nil {
			if errors.Is(err, errPast) {
				return nil
			}
			return err
		}
	}
}

// request asks the node for no more than what is needed: but the last lines of
// those that match are known only here.
func request(file File, o Options) *agentv1.TailRequest {
	r := &agentv1.TailRequest{Path: file.Path, Lines: int64(o.Tail), Follow: o.Follow}
	if o.Tail < 0 || o.picks() {
		r.Lines = -1
	}
	if !o.Since.IsZero() {
		r.Since = timestamppb.New(o.Since)
	}
	r.Contains, r.IgnoreCase = o.Grep.Words()
	return r
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

	rest  []byte          // of a line whose end is not here
	cri   strings.Builder // of a container's line that goes on
	time  time.Time       // of the latest line that has one
	level logline.Level
	keep  ring // the last lines that match, until the log stands
	stood bool
}

func newLines(file File, o Options) *lines {
	l := &lines{file: file, options: o, zone: time.UTC}
	if o.Tail >= 0 && o.picks() {
		l.keep.size = o.Tail
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
		if err := in.Send(ctx, l.release()); err != nil {
			return err
		}
		in.CaughtUp(ctx)
	default: // another file, or it begins anew: a line does not go on in it
		if err := in.Send(ctx, l.cut()); err != nil {
			return err
		}
	}
	records, err := l.split(r.GetData())
	return errors.Join(in.Send(ctx, records), err)
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

// end ends the log.
func (l *lines) end() []Record { return append(l.cut(), l.release()...) }

// release gives the last lines, once it is known that they are.
func (l *lines) release() []Record {
	l.stood = true
	return l.keep.take()
}

// line appends a line's record where the line is wanted. One that says neither
// time nor level, such as of a stack trace, goes with the one before it.
func (l *lines) line(to []Record, text []byte, now time.Time) []Record {
	parsed := logline.Parse(text, now)
	if !parsed.Time.IsZero() {
		l.time, l.level = parsed.Time, parsed.Level
	}
	if parsed.Level == logline.Unknown {
		parsed.Level = l.level
	}
	if parsed.Partial && l.cri.Len() < maxLine {
		l.cri.WriteString(parsed.Text)
		return to
	}
	if l.cri.Len() > 0 {
		parsed.Text = l.cri.String() + parsed.Text
		l.cri.Reset()
	}
	r := Record{
		Time: l.time, Node: l.file.Node, Source: l.file.Source, File: l.file.Path,
		Level: parsed.Level, Stream: parsed.Stream, Text: parsed.Text,
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
