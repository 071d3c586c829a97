package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

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
	t := &tailer{files: s.platform.Files, request: request, stream: stream,
		buffer: make([]byte, tailBlock), now: time.Now()}
	defer t.close()
	event, err := t.start()
	if err != nil && !(request.GetFollow() && errors.Is(err, fault.ErrNotExist)) {
		return err
	}
	_, offset := t.now.Zone()
	if err := stream.Send(&agentv1.TailReply{UtcOffset: int32(offset), Event: event}); err != nil {
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
	now     time.Time // the machine's time, with its zone

	file   io.ReadSeekCloser // nil: the file does not exist
	id     platform.FileID
	offset int64
	early  bool // whether all lines read so far are older than the time in the request's field `since`

	head    head  // the hash of the first bytes that were read
	skipped int64 // if the file is a copy, the number of bytes that were sent from its original

	known  bool  // whether the encoding is known
	wide   *wide // nil: the file is not UTF-16
	buffer []byte
	held   int    // bytes in buffer that wait for the rest of their line
	lower  []byte // the buffer's text in lower case
	found  []byte
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
	t.held, t.early, t.known, t.head, t.skipped = 0, false, false, head{}, 0
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
	if !last && (t.early || len(t.request.GetContains()) > 0) {
		whole := bytes.LastIndexByte(text, '\n') + 1
		if whole == 0 && t.held+tailSpare < len(t.buffer) {
			return nil
		}
		if whole > 0 {
			text = text[:whole]
		}
	}
	send := t.dropEarly(text)
	// A container's line may be split into pieces, and only one piece may contain a requested word.
	// So lines of containers are not filtered here.
	if len(t.request.GetContains()) > 0 && !logline.IsCRI(firstLine(send)) {
		send = t.filter(send)
	}
	if len(send) > 0 {
		if err := t.stream.Send(&agentv1.TailReply{Data: send, Place: t.place(len(text))}); err != nil {
			return err
		}
	}
	t.held = copy(t.buffer, t.buffer[len(text):t.held])
	return nil
}

// dropEarly removes the lines at the beginning of a text, up to the first line that was logged at
// or after the time in the request's field `since`.
func (t *tailer) dropEarly(text []byte) []byte {
	since := t.request.GetSince().AsTime()
	for t.early && len(text) > 0 {
		line := firstLine(text)
		if at, ok := logline.Time(line, t.now); ok && !at.Before(since) {
			t.early = false
			break
		}
		text = text[len(line):]
	}
	return text
}

func firstLine(text []byte) []byte {
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		return text[:end+1]
	}
	return text
}

// filter returns the lines that contain one of the requested words. It searches the text for the
// words instead of splitting it into lines, so that it skips most of a log at the speed of memory.
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
		t.found = append(t.found, text[start:begin]...)
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
	lines, since := t.request.GetLines(), t.request.GetSince()
	at := size
	if lines < 0 && since == nil {
		at = first
	}
	t.early = since != nil
	for end := size; lines != 0 && at > first; end = at {
		at = max(first, end-tailBlock)
		text, err := t.block(at, end)
		if err != nil {
			return err
		}
		if from, found := lastLines(text, &lines, end == size); found {
			at += t.length(text[:from])
			break
		}
		if since != nil && !t.reaches(text, since.AsTime()) {
			break
		}
	}
	return t.seek(at)
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
// set, the last byte of the block ends a line and does not begin one.
func lastLines(block []byte, wanted *int64, isEnd bool) (from int, found bool) {
	if *wanted < 0 {
		return 0, false
	}
	end := len(block)
	if isEnd {
		end--
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

// reaches reports whether the block begins at or after the given time, so that wanted lines may
// precede the block: it returns true if the first time in the block is not earlier than `then`. If
// no line of the block has a time, it returns false and switches the filter by time off.
func (t *tailer) reaches(block []byte, then time.Time) bool {
	for len(block) > 0 {
		line := firstLine(block)
		block = block[len(line):]
		if at, ok := logline.Time(line, t.now); ok {
			return !at.Before(then)
		}
	}
	t.early = false
	return false
}
