package agent

import (
	"io"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

// wide is the state of reading a log in UTF-16. Messages and searches use UTF-8; places are byte
// offsets in the file.
type wide struct {
	logline.Wide
	raw []byte
	odd int // number of bytes at the end of `raw` that wait for the rest of their character
}

// recognise determines whether the file is UTF-16, if the file is long enough to have a byte order
// mark. It does not change the position from which the file is read next, except to skip the mark.
func (t *tailer) recognise() error {
	size, err := t.file.Seek(0, io.SeekEnd)
	if err != nil || size < logline.MarkSize {
		return t.failed(err)
	}
	if _, err := t.file.Seek(0, io.SeekStart); err != nil {
		return t.failed(err)
	}
	var first [logline.MarkSize]byte
	if _, err := io.ReadFull(t.file, first[:]); err != nil {
		return t.failed(err)
	}
	t.known, t.wide = true, nil
	if encoding, ok := logline.Mark(first[:]); ok {
		t.wide = &wide{Wide: encoding, raw: make([]byte, tailBlock/2)}
		t.offset = max(t.offset, logline.MarkSize)
	}
	return t.seek(t.offset)
}

// read appends the file's next text to the buffer, and returns how many bytes
// of the file it read.
func (t *tailer) read() (int, error) {
	if !t.known {
		if err := t.recognise(); err != nil {
			return 0, err
		}
	}
	if t.wide == nil {
		n, err := t.file.Read(t.buffer[t.held:])
		t.offset += int64(n)
		t.held += n
		return n, err
	}
	w := t.wide
	room := min(len(w.raw), (len(t.buffer)-t.held)/3*2) // two bytes become at most three
	n, err := t.file.Read(w.raw[w.odd:room])
	t.offset += int64(n)
	text, used := w.Narrow(t.buffer[:t.held], w.raw[:w.odd+n], false)
	t.held = len(text)
	w.odd = copy(w.raw, w.raw[used:w.odd+n])
	return n, err
}

// length returns how many bytes a text takes in the file.
func (t *tailer) length(text []byte) int64 {
	if t.wide == nil {
		return int64(len(text))
	}
	return t.wide.Length(text)
}

// unit returns the size of the smallest character of the file, in bytes.
func (t *tailer) unit() int64 {
	if t.wide == nil {
		return 1
	}
	return 2
}
