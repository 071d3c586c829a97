package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/logline"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	// tailBlock is the maximum number of bytes of a log that are held at a time. A line that is
	// longer is cut.
	tailBlock = 256 << 10
	// tailSpare is the room for one character: the buffer counts as full if no more than tailSpare
	// bytes are free.
	tailSpare = 8
	// tailPause is the time between two polls of a log that is followed.
	tailPause = 100 * time.Millisecond
)

// Tail sends the text of a log. Tail follows a log by polling: Windows reports changes of a folder,
// but if a file is written often, Windows reports the change only when the file is closed.
func (s *filesService) Tail(request *agentv1.TailRequest, stream grpc.ServerStreamingServer[agentv1.TailReply]) error {
	now := time.Now()
	_, offset := now.Zone()
	t := newTailer(s.platform.Files, request, stream, now.In(time.FixedZone("node", offset)))
	defer t.close()
	event, err := t.start()
	if err != nil && !(request.GetFollow() && errors.Is(err, fault.ErrNotExist)) {
		return err
	}
	first := &agentv1.TailReply{UtcOffset: int32(offset), Event: event}
	if t.written.Before(t.now) {
		first.Written = timestamppb.New(t.written)
	}
	if err := stream.Send(first); err != nil {
		return err
	}
	if err := t.drain(!request.GetFollow()); err != nil {
		return err
	}
	if err := stream.Send(&agentv1.TailReply{Event: agentv1.TailEvent_TAIL_EVENT_END, Place: t.place(0)}); err != nil ||
		!request.GetFollow() {
		return err
	}
	return t.follow(stream.Context())
}

// tailer reads one log.
type tailer struct {
	files   platform.Files
	request *agentv1.TailRequest
	stream  grpc.ServerStreamingServer[agentv1.TailReply]
	now     time.Time // the machine's time, in its present zone
	step    int64     // how far begin goes back at a time, bytes
	run     int       // see logline.Run

	file    io.ReadSeekCloser // nil: the file does not exist
	id      platform.FileID
	offset  int64
	written time.Time // what the year of lines without a year is counted from; see lastWrite

	head    head  // the hash of the first bytes that were read
	skipped int64 // if the file is a copy, the number of bytes that were sent from its original

	known  bool  // whether the encoding is known
	wide   *wide // nil: the file is not UTF-16
	buffer []byte
	held   int    // bytes in buffer that wait for the rest of their line
	lower  []byte // the buffer's text in lower case
	found  []byte
}

func newTailer(files platform.Files, request *agentv1.TailRequest,
	stream grpc.ServerStreamingServer[agentv1.TailReply], now time.Time) *tailer {
	return &tailer{files: files, request: request, stream: stream, now: now, written: now, step: tailBlock,
		run: logline.Run, buffer: make([]byte, tailBlock)}
}

// open opens the file that has the log's name now.
func (t *tailer) open() error {
	for {
		before, err := t.files.Stat(t.request.GetPath())
		if err != nil {
			return err
		}
		file, err := t.files.Open(t.request.GetPath())
		if err != nil {
			return err
		}
		after, err := t.files.Stat(t.request.GetPath())
		if err == nil && before.ID == after.ID {
			t.use(file, after.ID)
			return nil
		}
		file.Close() // the log was replaced between the two calls of Stat, or is gone
		if err != nil {
			return err
		}
	}
}

// use sets the file that the tailer reads.
func (t *tailer) use(file io.ReadSeekCloser, id platform.FileID) {
	t.file, t.id, t.offset, t.known, t.wide = file, id, 0, false, nil
	t.head, t.skipped = head{}, 0
}

func (t *tailer) close() {
	if t.file != nil {
		t.file.Close()
		t.file = nil
	}
}

func (t *tailer) follow(ctx context.Context) error {
	ticker := time.NewTicker(tailPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if err := t.poll(); err != nil {
			return err
		}
	}
}

// poll sends new data. If the log cannot be read at this moment because it is being replaced, poll
// returns no error, and the next poll reads the log.
func (t *tailer) poll() error {
	info, err := t.files.Stat(t.request.GetPath())
	there := err == nil
	switch {
	case there && t.file != nil && info.ID == t.id && info.Size < t.offset && t.isGrowing():
		return nil
	case there && t.file != nil && info.ID == t.id && info.Size < t.offset:
		return t.restart(agentv1.TailEvent_TAIL_EVENT_TRUNCATED)
	case there && (t.file == nil || info.ID != t.id):
		if err := t.drain(true); err != nil { // the rest of the previous file
			return err
		}
		t.close()
		if t.open() != nil {
			return nil
		}
		return t.restart(agentv1.TailEvent_TAIL_EVENT_REPLACED)
	}
	return t.drain(false)
}

// restart reads the file from its beginning.
func (t *tailer) restart(event agentv1.TailEvent) error {
	t.held, t.known, t.head, t.skipped = 0, false, head{}, 0
	if err := t.seek(0); err != nil {
		return err
	}
	if err := t.stream.Send(&agentv1.TailReply{Event: event}); err != nil {
		return err
	}
	return t.drain(false)
}

func (t *tailer) seek(offset int64) error {
	t.offset = offset
	if t.wide != nil {
		t.wide.odd = 0
	}
	_, err := t.file.Seek(offset, io.SeekStart)
	return t.failed(err)
}

func (t *tailer) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read %s: %w", t.request.GetPath(), err)
}

// drain sends everything up to the end of the file. If `last` is set, it also sends a line without
// a line ending.
func (t *tailer) drain(last bool) error {
	for t.file != nil {
		if err := t.stream.Context().Err(); err != nil {
			return err
		}
		read, err := t.read()
		// If a file is truncated while its beginning is read, the reader returns an unexpected end
		// of file.
		ended := read == 0 && err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return t.failed(err)
		}
		if err := t.flush(last && ended); err != nil || ended {
			return err
		}
	}
	return nil
}

// flush sends the lines in the buffer.
func (t *tailer) flush(last bool) error {
	text := t.buffer[:t.held]
	if !last && len(t.request.GetContains()) > 0 {
		whole := bytes.LastIndexByte(text, '\n') + 1
		if whole == 0 && t.held+tailSpare < len(t.buffer) {
			return nil
		}
		if whole > 0 {
			text = text[:whole]
		}
	}
	send := text
	// A container's line may be split into pieces, and only one piece may contain a requested word.
	// So lines of containers are not filtered here, nor is UTF-16 that has no mark.
	if len(t.request.GetContains()) > 0 && bytes.IndexByte(text, 0) < 0 && !logline.IsCRI(firstLine(text)) {
		send = t.filter(text)
	}
	if len(send) > 0 {
		if err := t.stream.Send(&agentv1.TailReply{Data: send, Place: t.place(len(text))}); err != nil {
			return err
		}
	}
	t.held = copy(t.buffer, t.buffer[len(text):t.held])
	return nil
}

func firstLine(text []byte) []byte {
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		return text[:end+1]
	}
	return text
}

// filter returns the lines that contain one of the requested words. It searches the text for the
// words instead of splitting it into lines, so that it skips most of a log at the speed of memory. If such a line
// continues another one, filter returns that one too, since it has the time and the level of both.
func (t *tailer) filter(text []byte) []byte {
	words, in := t.request.GetContains(), text
	if t.request.GetIgnoreCase() {
		in = t.lowered(text)
	}
	next := make([]int, len(words))
	for i := range next {
		next[i] = -1
	}
	t.found = t.found[:0]
	found := 0 // the end of what has been found
	for begin := 0; ; {
		first := len(in)
		for i, word := range words {
			if next[i] < begin {
				next[i] = len(in)
				if at := bytes.Index(in[begin:], word); at >= 0 {
					next[i] = begin + at
				}
			}
			first = min(first, next[i])
		}
		if first == len(in) {
			return t.found
		}
		start := bytes.LastIndexByte(in[:first], '\n') + 1
		begin = first + len(firstLine(in[first:]))
		t.found = append(append(t.found, t.headBefore(text[found:start], text[start:begin])...), text[start:begin]...)
		found = begin
	}
}

// headBefore returns those of the lines before a line that determine its time and its level: back to a line with a
// time. It returns nil if the line has a time of its own, or if none before it has one.
func (t *tailer) headBefore(before, line []byte) (heads []byte) {
	for {
		switch l := logline.Parse(line, t.written); {
		case !l.Time.IsZero():
			return heads
		case len(before) == 0:
			return nil
		}
		start := bytes.LastIndexByte(before[:len(before)-1], '\n') + 1
		before, line = before[:start], before[start:]
		if l := logline.Parse(line, t.written); !l.Time.IsZero() || l.Level != logline.Unknown {
			heads = append(slices.Clone(line), heads...)
		}
	}
}

func (t *tailer) lowered(text []byte) []byte {
	t.lower = append(t.lower[:0], text...)
	for i, c := range t.lower {
		if c >= 'A' && c <= 'Z' {
			t.lower[i] = c + ('a' - 'A')
		}
	}
	return t.lower
}

// begin moves to the position from which the log is sent. It searches backwards from the end of the
// file, and reads no more than necessary.
func (t *tailer) begin() error {
	size, err := t.file.Seek(0, io.SeekEnd)
	if err != nil {
		return t.failed(err)
	}
	if err := t.recognise(); err != nil {
		return err
	}
	first := int64(0)
	if t.wide != nil {
		first, size = logline.MarkSize, size&^1
	}
	if offset, ok, err := t.copied(); ok || err != nil {
		t.skipped = offset
		return errors.Join(err, t.seek(offset))
	}
	at, err := t.lastLines(first, size)
	if err != nil {
		return err
	}
	if t.written, err = t.lastWrite(first, size); err != nil {
		return err
	}
	if t.request.GetSince() != nil {
		early, err := t.sinceStart(first, size)
		if err != nil {
			return err
		}
		at = max(at, early)
	}
	return t.seek(at)
}

// lastLines returns the position of the requested number of last lines.
func (t *tailer) lastLines(first, size int64) (at int64, err error) {
	lines := t.request.GetLines()
	if lines < 0 {
		return first, nil
	}
	at = size
	isEnd := true
	for end := size; lines != 0 && at > first; end = at {
		at = max(first, end-tailBlock)
		text, err := t.block(at, end)
		if err != nil {
			return 0, err
		}
		if from, found := lastLines(text, &lines, isEnd); found {
			return at + t.length(text[:from]), nil
		}
		isEnd = isEnd && len(bytes.TrimRight(text, "\x00")) == 0
	}
	return at, nil
}

// block returns the text between two positions of the file.
func (t *tailer) block(at, end int64) ([]byte, error) {
	if err := t.seek(at); err != nil {
		return nil, err
	}
	raw := t.buffer[:end-at]
	if _, err := io.ReadFull(t.file, raw); err != nil {
		return nil, t.failed(err)
	}
	if t.wide == nil {
		return raw, nil
	}
	text, _ := t.wide.Narrow(nil, raw, true)
	return text, nil
}

// lastLines finds the beginning of the last *wanted lines in a block. It subtracts from *wanted
// the lines that it passes, so that the search can continue in the previous block. If isEnd is
// set, the last byte of the block ends a line and does not begin one; NUL at the end belongs to no line.
func lastLines(block []byte, wanted *int64, isEnd bool) (from int, found bool) {
	if *wanted < 0 {
		return 0, false
	}
	end := len(block)
	if isEnd {
		end = max(0, len(bytes.TrimRight(block, "\x00"))-1)
	}
	for {
		end = bytes.LastIndexByte(block[:end], '\n')
		if end < 0 {
			return 0, false
		}
		if *wanted--; *wanted == 0 {
			return end + 1, true
		}
	}
}
