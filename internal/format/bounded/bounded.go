// Package bounded keeps a part of what a program prints, in bounded memory.
package bounded

import (
	"bytes"
	"sync"
)

// Head keeps the first bytes that are written to it. It is for one writer at a time.
type Head struct {
	Most int // bytes
	// Refuse is the error of a Write beyond Most; nil: such bytes are dropped.
	Refuse error
	kept   bytes.Buffer
}

// Write implements io.Writer.
func (h *Head) Write(p []byte) (int, error) {
	room := h.Most - h.kept.Len()
	if len(p) > room && h.Refuse != nil {
		return 0, h.Refuse
	}
	h.kept.Write(p[:min(len(p), room)])
	return len(p), nil
}

// Bytes returns the kept bytes. They are valid until the next Write.
func (h *Head) Bytes() []byte { return h.kept.Bytes() }

// String returns the kept bytes.
func (h *Head) String() string { return h.kept.String() }

// Tail keeps the last bytes that are written to it. It may be read while it is written.
type Tail struct {
	Most int // bytes
	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	p = p[max(0, n-t.Most):]
	// Drop large pieces only: to drop at each Write would be quadratic.
	if len(t.kept)+len(p) > 2*t.Most {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-min(len(t.kept), t.Most):]...)
	}
	t.kept = append(t.kept, p...)
	return n, nil
}

// Bytes returns a copy of the kept bytes.
func (t *Tail) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.kept[max(0, len(t.kept)-t.Most):])
}

// String returns the kept bytes.
func (t *Tail) String() string { return string(t.Bytes()) }
