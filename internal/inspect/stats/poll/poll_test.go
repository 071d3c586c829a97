package poll_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/poll"
)

// asker answers after a delay, and fails if fails returns an error for the call.
type asker struct {
	takes time.Duration
	fails func(call int64) error
	calls atomic.Int64
	most  atomic.Int64 // the highest number of concurrent calls
	now   atomic.Int64
}

func (a *asker) Source() stats.Source { return stats.CRI }

func (a *asker) Ask(ctx context.Context) ([]stats.Sample, float64, error) {
	a.most.Store(max(a.most.Load(), a.now.Add(1)))
	defer a.now.Add(-1)
	call := a.calls.Add(1)
	select {
	case <-time.After(a.takes):
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	if a.fails != nil {
		if err := a.fails(call); err != nil {
			return nil, 0, err
		}
	}
	return []stats.Sample{{Container: stats.Container{Pod: "a"}}, {Container: stats.Container{Pod: "b"}}}, 4, nil
}

func TestItAsksAtEveryTickForEveryCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{takes: 10 * time.Millisecond}
		o := poll.Options{
			Node: "win", Askers: []poll.Asker{a}, Interval: time.Second, For: 60500 * time.Millisecond, Callers: 2,
			Keep: func(c stats.Container) bool { return c.Pod == "b" },
		}
		callers := map[int]int{}
		began := time.Now()
		err := poll.Run(t.Context(), o, func(r stats.Reading) error {
			callers[r.Caller]++
			switch {
			case len(r.Samples) != 1:
				t.Errorf("len(r.Samples) = %v, want 1: %+v", len(r.Samples), r.Samples)
			case r.Samples[0].Container.Node != "win":
				t.Errorf("r.Samples[0].Container.Node = %q, want %q", r.Samples[0].Container.Node, "win")
			case r.Latency != 10*time.Millisecond:
				t.Errorf("r.Latency = %v, want %v", r.Latency, 10*time.Millisecond)
			case r.Cores != 4:
				t.Errorf("r.Cores = %v, want 4; reading %+v", r.Cores, r)
			}
			return nil
		})
		switch {
		case err != nil:
			t.Errorf("unexpected error: %v", err)
		case callers[0] != 61:
			t.Errorf("callers[0] = %v, want 61", callers[0])
		case callers[1] != 60:
			t.Errorf("callers[1] = %v, want 60", callers[1])
		case callers[2] != 60:
			t.Errorf("callers[2] = %v, want 60", callers[2])
		case a.most.Load() != 3:
			t.Errorf("a.most.Load() = %v, want 3; %v, calls %v, %d at a time", a.most.Load(), err,
				callers, a.most.Load())
		}
		if took := time.Since(began); took > 61*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestSlowSourceIsAskedAsOftenAsItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{takes: 2500 * time.Millisecond}
		n := 0
		err := poll.Run(t.Context(), poll.Options{Askers: []poll.Asker{a}, Interval: time.Second,
			For: 30 * time.Second},
			func(stats.Reading) error { n++; return nil })
		switch {
		case err != nil:
			t.Errorf("unexpected error: %v", err)
		case n < 10:
			t.Errorf("n = %v, want at least 10", n)
		case n > 13:
			t.Errorf("n = %v, want at most 13", n)
		case a.most.Load() != 1:
			t.Errorf("a.most.Load() = %v, want 1; %v, %d readings, %d at a time", a.most.Load(), err, n, a.most.Load())
		}
	})
}

// The end of the time ends no request, and each caller asks at least once if the time has a tick.
func TestAnswersAtTheEndOfTheTime(t *testing.T) {
	for name, test := range map[string]struct {
		interval, length time.Duration
		want             [2]int // readings by caller; the first caller also asks before the time begins
	}{
		"a request is under way":      {time.Second, 1500 * time.Millisecond, [2]int{2, 1}},
		"the only tick is at the end": {time.Second, time.Second, [2]int{2, 1}},
		"the time has no tick":        {time.Second, 900 * time.Millisecond, [2]int{1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got [2]int
				err := poll.Run(t.Context(), poll.Options{Askers: []poll.Asker{&asker{takes: 700 * time.Millisecond}},
					Interval: test.interval, For: test.length, Callers: 1}, func(r stats.Reading) error {
					if got[r.Caller]++; r.Err != "" {
						t.Error(r.Err)
					}
					return nil
				})
				if err != nil || got != test.want {
					t.Errorf("%v readings, want %v; %v", got, test.want, err)
				}
			})
		})
	}
}

func TestFailures(t *testing.T) {
	broken := errors.New("no pipe")
	for _, test := range []struct {
		name   string
		fails  func(int64) error
		each   error
		want   error
		failed int
	}{
		{"at once", func(int64) error { return broken }, nil, broken, 0},
		{"later", func(call int64) error {
			if call > 3 && call < 6 {
				return broken
			}
			return nil
		}, nil, nil, 2},
		{"of the one who takes them", nil, broken, broken, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failed := 0
				err := poll.Run(t.Context(), poll.Options{
					Askers: []poll.Asker{&asker{fails: test.fails}}, Interval: time.Second, For: 10 * time.Second,
				}, func(r stats.Reading) error {
					if r.Err != "" {
						failed++
					}
					return test.each
				})
				if !errors.Is(err, test.want) || failed != test.failed {
					t.Errorf("%v, %d failed", err, failed)
				}
			})
		})
	}
}

func TestItEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		a := &asker{takes: time.Hour}
		a.fails = nil
		began := time.Now()
		if err := poll.Run(ctx, poll.Options{Askers: []poll.Asker{a}, Interval: time.Second},
			func(stats.Reading) error { return nil }); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it ended after %s", took)
		}
	})
}
