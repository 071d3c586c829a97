package agent

import (
	"errors"
	"hash/fnv"
	"io"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// A log that is rotated by copying and truncating leaves a second file with the text
// that was sent already. It is recognised by how it begins.
const (
	headMost  = 4 << 10 // bytes that tell one log's beginning from another's
	headLeast = 64      // fewer may be those of any log
)

// head is the hash of a file's first bytes.
type head struct {
	size int64
	sum  uint64
}

// headOf hashes at most so many bytes, and leaves the file where it stands.
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

// noteHead hashes the beginning of what was read, as long as that is short.
func (t *tailer) noteHead() {
	if t.head.size >= headMost || t.head.size >= t.offset {
		return
	}
	if h, err := t.headOf(min(headMost, t.offset)); err == nil { // else a copy comes twice
		t.head = h
	}
}

// copied finds the place behind which a copy has what was not sent yet; false for a
// file that is none.
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

// isGrowing reports whether the file is a copy that is still being written: it is
// shorter than what was sent of its original.
func (t *tailer) isGrowing() bool { return t.skipped > 0 && t.offset == t.skipped }

// identified adds to a place how the file begins.
func (t *tailer) identified(place *agentv1.TailPlace) *agentv1.TailPlace {
	t.noteHead()
	place.HeadSize, place.Head = t.head.size, t.head.sum
	return place
}
