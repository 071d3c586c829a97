// Package poll asks sources of statistics at an interval, for one caller or for several
// simultaneous callers, and passes their answers on as readings.
package poll

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

// maxAnswerTime is the maximum time for an answer. If the interval is longer, the interval is the
// maximum time instead.
const maxAnswerTime = 10 * time.Second

// Asker is a source of statistics on one node. It is safe for concurrent use.
type Asker interface {
	Source() stats.Source
	// Ask returns the current samples, and the node's cores (0: not known).
	Ask(ctx context.Context) ([]stats.Sample, float64, error)
}

// Options select the sources of a watch, its interval and its length.
type Options struct {
	Node     string
	Askers   []Asker
	Interval time.Duration
	// For is how long to watch; 0: until the context ends. An answer that has not arrived by then is waited for. If For
	// is not shorter than Interval, each caller asks at least once, however slow this machine is.
	For time.Duration
	// Callers is the number of additional callers that ask at the same moments as the
	// first one.
	Callers int
	// Keep reports whether to keep the samples of a container; nil: keep all samples.
	Keep func(stats.Container) bool
}

// UnansweredError reports that a source did not answer the first request. Run does not
// retry, since later requests would fail for the same reason.
type UnansweredError struct {
	Source stats.Source
	Err    error
}

func (e *UnansweredError) Error() string {
	return fmt.Sprintf("ask %s for statistics: %v", e.Source, e.Err)
}

func (e *UnansweredError) Unwrap() error { return e.Err }

// Run watches until the time is over or ctx ends, neither of which is an error. It passes every
// reading to the given function, one reading at a time; the readings of one source and caller are
// in the order of the requests. If the function returns an error, Run ends and returns this error.
func Run(ctx context.Context, o Options, each func(stats.Reading) error) error {
	if err := o.first(ctx, each); err != nil || ctx.Err() != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	var failed error
	var callers sync.WaitGroup
	for _, asker := range o.Askers {
		for caller := range o.Callers + 1 {
			callers.Go(func() {
				o.repeat(ctx, asker, caller, func(r stats.Reading) {
					mu.Lock()
					defer mu.Unlock()
					if failed != nil {
						return
					}
					if failed = each(r); failed != nil {
						stop(failed)
					}
				})
			})
		}
	}
	callers.Wait()
	return failed
}

// first asks every source once, and returns an *UnansweredError if a source does not answer.
func (o Options) first(ctx context.Context, each func(stats.Reading) error) error {
	for _, asker := range o.Askers {
		reading, err := o.ask(ctx, asker, 0)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return &UnansweredError{asker.Source(), err}
		}
		if err := each(reading); err != nil {
			return err
		}
	}
	return nil
}

// repeat asks at every tick until the time is over. If an answer takes longer than a tick, repeat
// skips the ticks that it missed.
func (o Options) repeat(ctx context.Context, asker Asker, caller int, give func(stats.Reading)) {
	ticker := time.NewTicker(o.Interval)
	defer ticker.Stop()
	var over <-chan time.Time // nil: never
	if o.For > 0 {
		over = time.After(o.For)
	}
	for first := o.Interval <= o.For; ; first = false {
		end := over
		if first {
			end = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-end:
			return
		case <-ticker.C:
		}
		select {
		case <-end: // a tick may be ready after the end, too, and select chooses any
			return
		default:
		}
		reading, err := o.ask(ctx, asker, caller)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			reading.Err = err.Error()
		}
		give(reading)
	}
}

func (o Options) ask(ctx context.Context, asker Asker, caller int) (stats.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, max(maxAnswerTime, o.Interval))
	defer cancel()
	began := time.Now()
	samples, cores, err := asker.Ask(ctx)
	received := time.Now()
	reading := stats.Reading{
		Node: o.Node, Source: asker.Source(), Caller: caller, Received: received, Latency: received.Sub(began),
		Cores: cores,
	}
	if err != nil {
		return reading, err
	}
	for _, s := range samples {
		s.Container.Node = o.Node
		if o.Keep == nil || o.Keep(s.Container) {
			reading.Samples = append(reading.Samples, s)
		}
	}
	return reading, nil
}
