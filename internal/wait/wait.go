// Package wait waits for conditions that can only be detected by polling.
//
// A [Condition] has a name, a function that checks whether the condition holds, and the pause
// between two checks. If the condition does not hold in time, the error has the condition's name,
// the duration of the wait, and the last state that was seen. [For] pauses for a duration or until
// a context ends, for loops that do more than wait.
package wait

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Condition is a state that other code, another program or another machine brings about without a
// notification.
type Condition struct {
	// Name is the text after "wait for" in errors, such as "the sandbox to end".
	Name string
	// Interval is the pause between two calls of Look.
	Interval time.Duration
	// MaxInterval is the longest pause. If it is longer than Interval, each pause is twice as long
	// as the previous pause, up to MaxInterval.
	MaxInterval time.Duration
	// Limit bounds the wait; 0: only the context bounds it.
	Limit time.Duration
	// Look returns nil if the condition holds, otherwise the present state as an error. An error
	// that [Stop] returned ends the wait. The context that Look receives ends when the wait ends.
	Look func(ctx context.Context) error
	// Pending, if set, is called with the error of Look each time the condition does not hold yet
	// and Wait is going to pause before it looks again.
	Pending func(state error)
}

// Wait calls Look, at least once, until the condition holds. If Look returns Stop(err), Wait
// returns err, unless the time is over and err reports only that Look was interrupted. If Limit is
// over or ctx ends, Wait returns an *Error.
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
			if bounded.Err() == nil || !errors.Is(end.err, bounded.Err()) {
				return end.err
			}
			state = end.err
		}
		// If the time is over, the state may report only that Look was interrupted. A server may see the end of the time
		// a moment before this side does.
		if last == nil || bounded.Err() == nil && !isContextError(state) {
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

// Stop wraps err in a state that ends the wait if Look returns it, for errors that more waiting
// would not change. err must not be nil.
func Stop(err error) error { return &stop{err} }

// StopIf returns Stop(err) if useless is true, otherwise err itself.
func StopIf(useless bool, err error) error {
	if useless {
		return Stop(err)
	}
	return err
}

type stop struct{ err error }

func (s *stop) Error() string { return s.err.Error() }

// Error reports that a condition did not hold before the time was over.
type Error struct {
	Name  string        // of the condition
	After time.Duration // since the wait began
	Last  error         // the last state that was seen
	Err   error         // why the wait ended: context.DeadlineExceeded or the context's cause
}

func (e *Error) Error() string {
	text := fmt.Sprintf("wait for %s: given up after %s", e.Name, e.After.Round(100*time.Millisecond))
	// A cause that only wraps DeadlineExceeded has more information, so this is not errors.Is.
	if e.Err != context.DeadlineExceeded {
		text += ": " + e.Err.Error()
	}
	if !isContextError(e.Last) {
		text += "; last seen: " + e.Last.Error()
	}
	return text
}

// isContextError reports whether a state has no information about the condition: the state is
// missing, or reports only that Look was interrupted.
func isContextError(state error) bool {
	// An error that wraps a context error has information: it reports what was interrupted.
	return state == nil || state == context.DeadlineExceeded || state == context.Canceled
}

// Unwrap returns the reason why the wait ended and the last state that was seen.
func (e *Error) Unwrap() []error {
	return []error{e.Err, e.Last}
}

// For waits for d and returns nil. If ctx ends first, For returns ctx's error. If d is not
// positive, For does not wait.
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

// Retry repeats an action that a slowly ending process or a full disk can disturb briefly. It makes at most five
// attempts, in 1.5 seconds.
func Retry(ctx context.Context, action func() error) error {
	const attempts = 5
	rest := 100 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err := action()
		if err == nil || attempt == attempts {
			return err
		}
		if cut := For(ctx, rest); cut != nil {
			return errors.Join(err, cut)
		}
		rest *= 2
	}
}
