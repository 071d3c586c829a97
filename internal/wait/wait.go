// Package wait waits for conditions that only polling can establish.
//
// A [Condition] names what is waited for, says how to look at it and how often. When
// time is over, the error says what was waited for, for how long, and the last state
// that was seen. [For] is the pause between two looks, for loops that are more than a
// wait.
package wait

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Condition is a state that something else brings about, without a notification.
type Condition struct {
	// Name says what is waited for, behind "wait for": "the sandbox to end".
	Name string
	// Interval is the pause between two looks.
	Interval time.Duration
	// MaxInterval, if it is longer than Interval, is what the pause grows to: each is
	// twice the one before.
	MaxInterval time.Duration
	// Limit bounds the wait; 0: only the context does.
	Limit time.Duration
	// Look returns nil if the condition holds, else the state that it found instead. A
	// state in [Stop] ends the wait. Look's context ends with the wait.
	Look func(ctx context.Context) error
	// Pending, if set, is called after each look that is followed by another.
	Pending func(state error)
}

// Wait looks until the condition holds. It looks at least once. It returns what Look
// gave to Stop, or an *Error if time is over.
func (c Condition) Wait(ctx context.Context) error {
	begun := time.Now()
	bounded, cancel := ctx, func() {}
	if c.Limit > 0 {
		bounded, cancel = context.WithTimeout(ctx, c.Limit)
	}
	defer cancel()
	var last error
	for pause := c.Interval; ; pause = min(2*pause, max(c.Interval, c.MaxInterval)) {
		state := c.Look(bounded)
		var end *stop
		if state == nil {
			return nil
		} else if errors.As(state, &end) {
			return end.err
		}
		if bounded.Err() == nil || last == nil { // else state may only say that the look was cut short
			last = state
		}
		if bounded.Err() == nil && c.Pending != nil {
			c.Pending(state)
		}
		if err := For(bounded, pause); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return &Error{Name: c.Name, After: time.Since(begun), Last: last, Err: err}
		}
	}
}

// Stop returns a state for which waiting on is useless. err must not be nil.
func Stop(err error) error { return &stop{err} }

// StopIf returns Stop(err) if useless is true, and err as it is otherwise.
func StopIf(useless bool, err error) error {
	if useless {
		return Stop(err)
	}
	return err
}

type stop struct{ err error }

func (s *stop) Error() string { return s.err.Error() }

// Error says that a condition did not hold before its time was over.
type Error struct {
	Name  string        // of the condition
	After time.Duration // since the wait began
	Last  error         // the state that was seen last
	Err   error         // why the wait ended: context.DeadlineExceeded or the context's cause
}

func (e *Error) Error() string {
	text := fmt.Sprintf("wait for %s: given up after %s", e.Name, e.After.Round(100*time.Millisecond))
	if e.Err != context.DeadlineExceeded { // a cause that wraps it says more
		text += ": " + e.Err.Error()
	}
	if !isContextError(e.Last) {
		text += "; last seen: " + e.Last.Error()
	}
	return text
}

// isContextError reports whether a state only says that its look was cut short, or
// that there was none.
func isContextError(state error) bool {
	// one that wraps it says what was cut short
	return state == nil || state == context.DeadlineExceeded || state == context.Canceled
}

// Unwrap returns why the wait ended and the state that was seen last.
func (e *Error) Unwrap() []error {
	return []error{e.Err, e.Last}
}

// For waits for d, or returns ctx's error if that ends before. It does not wait if d
// is not positive.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
