package agent

import (
	"errors"
	"hash/fnv"
	"io"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// If a log is rotated by copying and truncating, the copy has text that the tailer has already
// sent. The tailer recognises the copy by its beginning.
const (
	headMost  = 4 << 10 // maximum number of bytes by which the beginning of a log is recognised
	headLeast = 64      // fewer bytes could be the beginning of any log
)

// head is the hash of a file's first bytes.
type head struct {
	size int64
	sum  uint64
}

// headOf returns the hash of at most the file's first `most` bytes. It does not change the position
// from which the file is read next.
func (t *tailer) headOf(most int64) (h head, err error) {
	if _, err := t.file.Seek(0, io.SeekStart); err != nil {
		return h, err
	}
	sum := fnv.New64a()
	h.size, err = io.Copy(sum, io.LimitReader(t.file, most))
	h.sum = sum.Sum64()
	_, back := t.file.Seek(t.offset, io.SeekStart)
	return h, errors.Join(err, back)
}

// noteHead hashes the first bytes of the file that were read, up to headMost bytes.
func (t *tailer) noteHead() {
	if t.head.size >= headMost || t.head.size >= t.offset {
		return
	}
	if h, err := t.headOf(min(headMost, t.offset)); err == nil { // if headOf fails, a copy may be sent twice
		t.head = h
	}
}

// copied returns the position in a copy at which the unsent bytes begin. ok is false if the file is not a copy of a
// log that the client has read.
func (t *tailer) copied() (offset int64, ok bool, err error) {
	for _, c := range t.request.GetCopies() {
		if c.GetHeadSize() < headLeast || c.GetHeadSize() > headMost {
			continue
		}
		h, err := t.headOf(c.GetHeadSize())
		if err != nil {
			return 0, false, t.failed(err)
		}
		if h == (head{c.GetHeadSize(), c.GetHead()}) {
			offset, ok = max(offset, c.GetOffset()), true
		}
	}
	return offset, ok, nil
}

// isGrowing reports whether the tailer reads a copy, has skipped the beginning that was sent from
// the original, and has read nothing behind that beginning yet. If such a copy is shorter than
// t.offset, it is still being written.
func (t *tailer) isGrowing() bool { return t.skipped > 0 && t.offset == t.skipped }

// identified adds the hash of the file's first bytes to a place, so that a copy of the file can be
// recognised later.
func (t *tailer) identified(place *agentv1.TailPlace) *agentv1.TailPlace {
	t.noteHead()
	place.HeadSize, place.Head = t.head.size, t.head.sum
	return place
}
