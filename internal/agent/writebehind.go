package agent

import "io"

// writeBehind collects parts of readChunk bytes, and writes each in a goroutine of its own, so that the caller makes the
// next part meanwhile. The caller must call Close, also after an error. It suits files that are of no use in part: up to
// two parts are not in the file yet.
type writeBehind struct {
	part, other []byte // the part being filled; the one being written
	parts       chan []byte
	ended       chan struct{}
	err         error // of the goroutine; valid once ended is closed
}

func newWriteBehind(to io.Writer) *writeBehind {
	w := &writeBehind{parts: make(chan []byte), ended: make(chan struct{})}
	go w.run(to)
	return w
}

func (w *writeBehind) run(to io.Writer) {
	defer close(w.ended)
	for part := range w.parts {
		if _, w.err = to.Write(part); w.err != nil {
			return
		}
	}
}

// Write returns the error of an earlier part.
func (w *writeBehind) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		if len(w.part) == readChunk {
			if err := w.hand(); err != nil {
				return n, err
			}
		}
		taken := min(len(p), readChunk-len(w.part))
		w.part = append(w.part, p[:taken]...)
		n, p = n+taken, p[taken:]
	}
	return n, nil
}

// hand hands the part over and takes the other one. The goroutine accepts a part only when it has written the one
// before.
func (w *writeBehind) hand() error {
	select {
	case w.parts <- w.part:
		w.part, w.other = w.other[:0], w.part
		return nil
	case <-w.ended:
		return w.err
	}
}

// Close writes the rest and waits until everything is written.
func (w *writeBehind) Close() error {
	if len(w.part) > 0 {
		_ = w.hand() // Close returns the error
	}
	close(w.parts)
	<-w.ended
	return w.err
}
