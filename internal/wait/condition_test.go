package wait_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/wait"
)

var (
	errStarting = errors.New("it is starting")
	errBroken   = errors.New("it is broken")
	errCtrlC    = errors.New("interrupted by Ctrl-C")
)

// looks returns a Look that finds the states in turn, then the last one for ever, and
// the times of the looks since now.
func looks(states ...error) (look func(context.Context) error, at *[]time.Duration) {
	begun, at := time.Now(), new([]time.Duration)
	return func(context.Context) error {
		*at = append(*at, time.Since(begun))
		return states[min(len(*at), len(states))-1]
	}, at
}

// then returns a Look that finds a state, and after that calls the next Look.
func then(first error, next func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if state := first; state != nil {
			first = nil
			return state
		}
		return next(ctx)
	}
}

func TestConditionLooksUntilItHolds(t *testing.T) {
	for name, c := range map[string]struct {
		condition wait.Condition
		at        []time.Duration
	}{
		"even": {wait.Condition{Interval: time.Second}, []time.Duration{0, 1e9, 2e9, 3e9, 4e9}},
		"growing": {wait.Condition{Interval: time.Second, MaxInterval: 3 * time.Second},
			[]time.Duration{0, 1e9, 3e9, 6e9, 9e9}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				look, at := looks(errStarting, errStarting, errStarting, errStarting, nil)
				c.condition.Look = look
				if err := c.condition.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(c.at, *at); diff != "" {
					t.Errorf("looked at (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestConditionStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		look, _ := looks(wait.StopIf(false, errStarting), wait.StopIf(true, errBroken))
		err := wait.Condition{Name: "it to run", Interval: time.Minute, Look: look}.Wait(t.Context())
		if err != errBroken || time.Since(begun) != time.Minute { // as it was given
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

func TestConditionReportsWhatIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pending []string
		look, _ := looks(errStarting, errBroken, wait.Stop(errCtrlC))
		c := wait.Condition{Interval: time.Second, Look: look, Pending: func(state error) {
			pending = append(pending, state.Error())
		}}
		if err := c.Wait(t.Context()); !errors.Is(err, errCtrlC) {
			t.Errorf("the error is %v, want %v", err, errCtrlC)
		}
		if diff := cmp.Diff([]string{"it is starting", "it is broken"}, pending); diff != "" {
			t.Errorf(`diff is %q, want ""`, diff)
		}
	})
}

func TestConditionWhoseTimeIsOver(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for name, c := range map[string]struct {
		limit time.Duration
		end   func(context.Context) (context.Context, context.CancelFunc)
		look  func(context.Context) error
		text  string
		is    []error
	}{
		"its own limit": {
			limit: 90 * time.Second,
			text:  "wait for it to run: given up after 1m30s; last seen: it is starting",
			is:    []error{context.DeadlineExceeded, errStarting},
		},
		"the context's deadline": {
			limit: 90 * time.Second,
			end: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 5*time.Second)
			},
			text: "wait for it to run: given up after 5s; last seen: it is starting",
			is:   []error{context.DeadlineExceeded, errStarting},
		},
		"the context's cause": {
			end: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				time.AfterFunc(1234*time.Millisecond, func() { cancel(errCtrlC) })
				return ctx, func() {}
			},
			text: "wait for it to run: given up after 1.2s: interrupted by Ctrl-C; last seen: it is starting",
			is:   []error{errCtrlC, errStarting},
		},
		"a look that was cut short and says which": {
			limit: time.Second,
			look:  func(ctx context.Context) error { return fmt.Errorf("GET /healthz: %w", hang(ctx)) },
			text:  "wait for it to run: given up after 1s; last seen: GET /healthz: context deadline exceeded",
			is:    []error{context.DeadlineExceeded},
		},
		"a look that was cut short and wants to stop": {
			limit: time.Second,
			look: then(errStarting, func(ctx context.Context) error {
				return wait.Stop(fmt.Errorf("GET /healthz: %w", hang(ctx)))
			}),
			text: "wait for it to run: given up after 1s; last seen: it is starting",
			is:   []error{context.DeadlineExceeded, errStarting},
		},
		"a look that was cut short": {
			limit: time.Second, look: hang,
			text: "wait for it to run: given up after 1s",
			is:   []error{context.DeadlineExceeded},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if c.end != nil {
					ctx, cancel = c.end(ctx)
				}
				defer cancel()
				look, _ := looks(errStarting)
				if c.look != nil {
					look = c.look
				}
				err := wait.Condition{Name: "it to run", Interval: 700 * time.Millisecond, Limit: c.limit,
					Look: look}.Wait(ctx)
				if late := (*wait.Error)(nil); !errors.As(err, &late) {
					t.Fatalf("the error is %v, a %T, want a %T", err, err, late)
				}
				if diff := cmp.Diff(c.text, err.Error()); diff != "" {
					t.Errorf(`diff is %q, want ""`, diff)
				}
				for _, is := range c.is {
					if !errors.Is(err, is) {
						t.Errorf("is not %v", is)
					}
				}
			})
		})
	}
}
