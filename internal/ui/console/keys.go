package console

import (
	"context"
	"io"
	"sync"

	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

const (
	// EscapeName and escapeKey are the key that ends the session if it is pressed escapeTimes times in
	// a row.
	EscapeName  = "Ctrl-]"
	escapeKey   = 0x1d
	escapeTimes = 3
	// mostPending bounds the typed bytes that were not sent yet. Beyond it, keys are not read, so
	// that whoever pastes has to wait.
	mostPending = 1 << 20
)

// keyboard reads keys even if they cannot be sent, so that the escape key works when a node does
// not answer.
type keyboard struct {
	from io.Reader
	end  context.CancelCauseFunc

	mu      sync.Mutex
	pending []byte
	err     error
	changed chan struct{} // closed at the next change
}

func newKeyboard(from io.Reader, end context.CancelCauseFunc) *keyboard {
	return &keyboard{from: from, end: end, changed: make(chan struct{})}
}

// read reads keys until the terminal has none any more, or the person has ended the session.
func (k *keyboard) read() {
	buffer := make([]byte, 32<<10)
	escapes := 0
	for {
		n, err := k.from.Read(buffer)
		for i, key := range buffer[:n] {
			if key != escapeKey {
				escapes = 0
			} else if escapes++; escapes == escapeTimes {
				k.add(buffer[:i], nil)
				k.end(&interrupt.Error{Signal: "three times " + EscapeName})
				return
			}
		}
		k.add(buffer[:n], err)
		if err != nil {
			return
		}
	}
}

// add appends keys. It waits while too many are pending.
func (k *keyboard) add(keys []byte, err error) {
	for {
		k.mu.Lock()
		if len(k.pending) <= mostPending {
			k.pending, k.err = append(k.pending, keys...), err
			k.notify()
			k.mu.Unlock()
			return
		}
		changed := k.changed
		k.mu.Unlock()
		<-changed
	}
}

// notify wakes all that wait for a change; the caller holds the lock.
func (k *keyboard) notify() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// take waits for keys until ctx ends.
func (k *keyboard) take(ctx context.Context, p []byte) (int, error) {
	for {
		n, changed, err := k.taken(p)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// taken returns keys that are there, or a channel that is closed at the next change.
func (k *keyboard) taken(p []byte) (n int, changed <-chan struct{}, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n = copy(p, k.pending)
	if n == 0 {
		return 0, k.changed, k.err
	}
	k.pending = append(k.pending[:0], k.pending[n:]...)
	k.notify()
	return n, nil, nil
}

// keysUntil reads keys until ctx ends.
type keysUntil struct {
	*keyboard
	ctx context.Context
}

func (k keysUntil) Read(p []byte) (int, error) {
	if err := k.ctx.Err(); err != nil {
		return 0, err
	}
	return k.take(k.ctx, p)
}
