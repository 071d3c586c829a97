// Package once does a piece of work once for all callers that request it. That includes
// callers that request it while it is under way.
package once

import (
	"context"
	"sync"
)

// Map stores the results of work, one for each key. The zero value is ready, and safe for
// concurrent use.
type Map[K comparable, V any] struct {
	// Valid reports whether a stored value may still be returned; if not, the work is done again. nil: always.
	Valid func(V) bool

	mutex   sync.Mutex
	entries map[K]*entry[V]
}

// entry is one piece of work. The caller that holds turn does the work; the others wait.
type entry[V any] struct {
	turn  chan struct{}
	done  bool
	value V
}

// Do returns the result of the work for a key; an earlier call may have produced it. If
// the work fails, or reports that its value must not be kept, the next caller does the work
// again. A caller that waits for another caller's work stops waiting when its ctx ends;
// its error is ctx's cause.
func (m *Map[K, V]) Do(ctx context.Context, key K, work func() (value V, keep bool, err error)) (V, error) {
	var none V
	e := m.entry(key)
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	if e.done && (m.Valid == nil || m.Valid(e.value)) {
		return e.value, nil
	}
	e.done = false
	value, keep, err := work()
	if err != nil {
		return none, err
	}
	if keep {
		e.value, e.done = value, true
	}
	return value, nil
}

func (m *Map[K, V]) entry(key K) *entry[V] {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	e, ok := m.entries[key]
	if !ok {
		if m.entries == nil {
			m.entries = map[K]*entry[V]{}
		}
		e = &entry[V]{turn: make(chan struct{}, 1)}
		m.entries[key] = e
	}
	return e
}
