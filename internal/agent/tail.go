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
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/logline"
)

const (
	// tailBlock is how much of a log is held at a time, bytes. A line that is
	// longer is cut.
	tailBlock = 256 << 10
	// tailSpare is what a block has left when it is full: room for a character.
	tailSpare = 8
	// tailPause is between two looks at a log that is followed.
	tailPause = 100 * time.Millisecond
)

// What TailReply.event may say. The words are package logs's, too.
const (
	tailStands    = "end"       // all that stood in the log has been sent
	tailReplaced  = "replaced"  // another file has the log's name: it was rotated
	tailTruncated = "truncated" // the file begins anew
	tailLost      = "lost"      // the file of the place to go on from is gone, with what it had
)

// Tail follows by looking: Windows tells of changes to a folder, and of a file
// that is written to often only once it is closed.
func (s *filesService) Tail(request *agentv1.TailRequest, stream grpc.ServerStreamingServer[agentv1.TailReply]) error {
	t := &tailer{files: s.host.Files, request: request, stream: stream, buffer: make([]byte, tailBlock), now: time.Now()}
	defer t.close()
	event, err := t.start()
	if err != nil && !(request.GetFollow() && errors.Is(err, host.ErrNotExist)) {
		return err
	}
	_, offset := t.now.Zone()
	if err := stream.Send(&agentv1.TailReply{UtcOffset: int32(offset), Event: event}); err != nil {
		return err
	}
	if err := t.drain(!request.GetFollow()); err != nil {
		return err
	}
	if err := stream.Send(&agentv1.TailReply{Event: tailStands, Place: t.place(0)}); err != nil || !request.GetFollow() {
		return err
	}
	return t.follow(stream.Context())
}

// tailer is one log that is read.
type tailer struct {
	files   host.Files
	request *agentv1.TailRequest
	stream  grpc.ServerStreamingServer[agentv1.TailReply]
	now     time.Time // of the machine, with its zone

	file   io.ReadSeekCloser // nil: not there
	id     host.FileID
	offset int64
	early  bool // what is read is from before since

	head    head  // of what was read
	skipped int64 // of a copy: the bytes that its original had sent

	known  bool  // whether the file is UTF-16
	wide   *wide // nil: it is not
	buffer []byte
	held   int    // bytes in buffer that wait for the rest of their line
	lower  []byte // buffer's text in lower case
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
			t.take(file, after.ID)
			return nil
		}
		file.Close() // replaced in between
		if err != nil {
			return err
		}
	}
}

// take begins with a file.
func (t *tailer) take(file io.ReadSeekCloser, id host.FileID) {
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
		if err := t.look(); err != nil {
			return err
		}
	}
}

// look sends what is new. What cannot be looked at now, since it is being
// replaced, is looked at next time.
func (t *tailer) look() error {
	info, err := t.files.Stat(t.request.GetPath())
	there := err == nil
	switch {
	case there && t.file != nil && info.ID == t.id && info.Size < t.offset && t.isGrowing():
		return nil
	case there && t.file != nil && info.ID == t.id && info.Size < t.offset:
		return t.again(tailTruncated)
	case there && (t.file == nil || info.ID != t.id):
		if err := t.drain(true); err != nil { // the rest of the one before
			return err
		}
		t.close()
		if t.open() != nil {
			return nil
		}
		return t.again(tailReplaced)
	}
	return t.drain(false)
}

// again reads the file from its beginning.
func (t *tailer) again(event string) error {
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

// drain sends what there is to the end of the file; with last, also a line that
// has no end.
func (t *tailer) drain(last bool) error {
	for t.file != nil {
		if err := t.stream.Context().Err(); err != nil {
			return err
		}
		read, err := t.read()
		// A file that was cut while its beginning was looked at ends unexpectedly.
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
	send := t.late(text)
	// A container's line may come in pieces, of which only one has the word.
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

// late leaves out the lines from before since, at the beginning.
func (t *tailer) late(text []byte) []byte {
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

// filter gives the lines that contain one of the words. It looks for words and
// not at lines: most of a log is then passed over at the speed of memory.
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

// begin finds where to begin, from the end of the file backwards, and reads no
// more than it has to.
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

// block is the text between two places.
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

// lastLines finds the beginning of the last lines; those that it passes are no
// longer wanted. The very last byte ends a line and begins none.
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

// reaches is whether there may be lines of then or later in front of the block:
// the first time in it is not earlier. Lines without any time are all taken.
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
