package netpol

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/proof/netprobe"
	"github.com/swdt-dev/swdt/internal/wait"
)

const (
	// pollTimeout bounds an attempt while a policy binds. A verdict is only given with the full timeout.
	pollTimeout = 500 * time.Millisecond
	// pollInterval is the time between two rounds of a pod.
	pollInterval = 100 * time.Millisecond
)

// wish is the wanted result of a cell.
type wish int

const (
	deny     wish = iota
	allow         // the cell must pass
	whatever      // both is right, since the meaning of policies is undefined
	either        // both is right, since the pod network has a known limit
)

// wishOf returns what the policies wish of a cell.
func wishOf(c cell) wish {
	switch {
	case c.verdict.Undefined():
		return whatever
	case c.verdict.Allowed():
		return allow
	}
	return deny
}

// state holds the last result of a cell.
type state struct {
	netprobe.Result
	right bool      // the result is as expected
	since time.Time // when the first attempt began of those that were right without a pause
}

// meant reports whether the result is as the policies mean.
func (s *state) meant(c cell) bool {
	return (s.Outcome == netprobe.Connected) == c.verdict.Allowed()
}

// take adds the result of an attempt to the state.
func (s *state) take(r netprobe.Result, wanted wish, begun time.Time) {
	right := r.Outcome == netprobe.Connected
	switch r.Outcome {
	case netprobe.Timeout, netprobe.Refused, netprobe.Unreachable:
		right = wanted != allow
	case netprobe.Connected:
		right = wanted != deny
	}
	if right && !s.right {
		s.since = begun
	}
	s.Result, s.right = r, right
}

// settle makes attempts until all cells are as expected, or for w.Settle. The last attempt of each cell has
// the full timeout. bound is the time from begin until all cells were as expected for good; it is only
// valid if all of them are.
func (w *run) settle(ctx context.Context, all []cell, wanted []wish, begin time.Time) (states []state,
	bound time.Duration, err error) {
	states = make([]state, len(all))
	until := begin.Add(w.Settle)
	poll := func(cells []int) error { return w.poll(ctx, all, cells, wanted, states, until) }
	verify := func(cells []int) error { return w.attempt(ctx, all, cells, wanted, states, w.ProbeTimeout) }
	for {
		if err := w.eachPod(ctx, all, poll); err != nil {
			return states, 0, err
		}
		if err := w.eachPod(ctx, all, verify); err != nil {
			return states, 0, err
		}
		done := !slices.ContainsFunc(states, func(s state) bool { return !s.right })
		if done || !time.Now().Before(until) {
			break
		}
	}
	for _, s := range states {
		bound = max(bound, s.since.Sub(begin))
	}
	return states, bound, nil
}

// eachPod calls f for the cells of each source, all at the same time.
func (w *run) eachPod(ctx context.Context, all []cell, f func(cells []int) error) error {
	bySource := make([][]int, len(w.model.Pods))
	for i, c := range all {
		bySource[c.from] = append(bySource[c.from], i)
	}
	var running sync.WaitGroup
	failures := make([]error, len(bySource))
	for source, cells := range bySource {
		if len(cells) > 0 {
			running.Go(func() { failures[source] = f(cells) })
		}
	}
	running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(failures...)
}

// poll makes attempts for the cells of a source that are not as expected, until all are, or until a time.
func (w *run) poll(ctx context.Context, all []cell, cells []int, wanted []wish, states []state,
	until time.Time) error {
	for {
		pending := slices.DeleteFunc(slices.Clone(cells), func(i int) bool { return states[i].right })
		if len(pending) == 0 || !time.Now().Before(until) {
			return nil
		}
		if err := w.attempt(ctx, all, pending, wanted, states, min(pollTimeout, w.ProbeTimeout)); err != nil {
			return err
		}
		if err := wait.For(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// attempt makes one attempt for each of the cells of a source.
func (w *run) attempt(ctx context.Context, all []cell, cells []int, wanted []wish, states []state,
	timeout time.Duration) error {
	from := all[cells[0]].from
	for part := range slices.Chunk(cells, netprobe.MaxTargets) {
		targets := make([]netprobe.Target, len(part))
		for i, at := range part {
			to := w.model.Pods[all[at].to]
			targets[i] = netprobe.Target{Port: onWire(w.model.Ports[all[at].port]), Name: to.Name(),
				Address: to.Address.String()}
		}
		begun := time.Now()
		results, err := round(ctx, w.sessions[from], w.model.Pods[from], targets, timeout)
		if err != nil {
			return err
		}
		for i, at := range part {
			states[at].take(results[i], wanted[at], begun)
		}
	}
	return nil
}
