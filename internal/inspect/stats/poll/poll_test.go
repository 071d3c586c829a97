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
			if len(r.Samples) != 1 || r.Samples[0].Container.Node != "win" || r.Latency != 10*time.Millisecond ||
				r.Cores != 4 {
				t.Errorf("reading %+v", r)
			}
			return nil
		})
		if err != nil || callers[0] != 61 || callers[1] != 60 || callers[2] != 60 || a.most.Load() != 3 {
			t.Errorf("%v, calls %v, %d at a time", err, callers, a.most.Load())
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
		if err != nil || n < 10 || n > 13 || a.most.Load() != 1 {
			t.Errorf("%v, %d readings, %d at a time", err, n, a.most.Load())
		}
	})
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
