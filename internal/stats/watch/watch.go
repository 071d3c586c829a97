// Package watch asks sources of statistics again and again, on behalf of one
// caller or of many at once, and hands their answers on as readings.
package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/stats"
)

// patience is how long an answer may take, where the interval is not longer.
const patience = 10 * time.Second

// Asker is a source of statistics on one node. It may be asked by many at a time.
type Asker interface {
	Source() stats.Source
	// Ask gives the samples of now, and the node's cores (0: not known).
	Ask(ctx context.Context) ([]stats.Sample, float64, error)
}

// Options of a watch.
type Options struct {
	Node     string
	Askers   []Asker
	Interval time.Duration
	For      time.Duration // 0: until the context ends
	// Callers ask beside the one that watches, at the same moments.
	Callers int
	// Keep says which samples are wanted; nil: all.
	Keep func(stats.Container) bool
}

// UnansweredError is a source that did not answer at the first time of asking:
// more of the same is not to be expected.
type UnansweredError struct {
	Source stats.Source
	Err    error
}

func (e *UnansweredError) Error() string {
	return fmt.Sprintf("ask %s for statistics: %v", e.Source, e.Err)
}

func (e *UnansweredError) Unwrap() error { return e.Err }

// Run watches until the time is over or ctx ends, neither of which is an error.
// Each reading is given to each, one at a time; those of one source and caller in
// the order in which they were asked for. It ends with the error that each gives.
func Run(ctx context.Context, o Options, each func(stats.Reading) error) error {
	if err := o.first(ctx, each); err != nil || ctx.Err() != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if o.For > 0 {
		timer := time.AfterFunc(o.For, func() { stop(nil) })
		defer timer.Stop()
	}
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

// first asks every source once, and gives up where one does not answer.
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

// repeat asks at every tick; where an answer takes longer, the ticks in between
// are left out.
func (o Options) repeat(ctx context.Context, asker Asker, caller int, give func(stats.Reading)) {
	ticker := time.NewTicker(o.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
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
	ctx, cancel := context.WithTimeout(ctx, max(patience, o.Interval))
	defer cancel()
	began := time.Now()
	samples, cores, err := asker.Ask(ctx)
	received := time.Now()
	reading := stats.Reading{
		Node: o.Node, Source: asker.Source(), Caller: caller, Received: received, Latency: received.Sub(began), Cores: cores,
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
