package up

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/ui"
)

// A stage takes minutes the first time, and seconds if an earlier run has already done its work. A stage
// that downloads takes longer than one that does not. So these times are stored separately. If a stage
// completes the work of an interrupted run, or changes something that exists, its time predicts no other
// run, and is not stored.

// run shows the stages, runs them, and stores how long they took.
func (w *work) run(ctx context.Context, all []*stage) ([]Stage, error) {
	took := map[string]time.Duration{}
	for _, s := range all {
		if !w.DryRun {
			s.task = w.Board.Add(s.kind, s.node)
			w.estimate(s)
		}
	}
	results, err := runStages(ctx, all, w.Reporter)
	for _, s := range all {
		if kind := w.comparable(s); kind != "" {
			took[kind] = time.Duration(s.result.Seconds * float64(time.Second))
		}
	}
	w.Times.RememberAll(took)
	return results, err
}

// estimate gives a stage the durations of earlier runs, and makes the stage record its progress.
func (w *work) estimate(s *stage) {
	stage := label(s.kind, s.node)
	if w.command == "up" {
		reached := w.notes.now().Stages[stage]
		s.found, s.resumed = reached == succeeded, reached == begun
	}
	times := map[bool][]time.Duration{} // the keys: with a download or not; the most probable time is first
	for _, downloads := range []bool{false, true} {
		first := w.Times.Of(w.timesOf(s, s.found, downloads))
		times[downloads] = append(times[downloads], first)
		if s.found && first > 0 { // the result of that run may have been removed
			times[downloads] = append(times[downloads], w.Times.Of(w.timesOf(s, false, downloads)))
		}
	}
	s.before = func(elapsed time.Duration, downloads bool) time.Duration {
		candidates := times[downloads]
		for _, took := range candidates {
			if took > elapsed {
				return took
			}
		}
		return slices.Max(candidates) // the stage already takes longer than any earlier one
	}
	if w.command != "up" || s.found {
		return
	}
	run := s.run
	s.run = func(ctx context.Context, r ui.Reporter) (done, error) {
		w.reached(stage, begun)
		result, err := run(ctx, r)
		if err == nil {
			w.reached(stage, succeeded)
		}
		return result, err
	}
}

// reached records how far a stage has come. It ignores an error, which only makes estimates worse.
func (w *work) reached(stage string, how progress) {
	_ = w.notes.change(func(made *record) {
		if made.Stages == nil {
			made.Stages = map[string]progress{}
		}
		made.Stages[stage] = how
	})
}

// comparable returns the name under which the time of a stage is stored. It returns "" for a time that is
// not comparable with other runs; such a time is not stored.
func (w *work) comparable(s *stage) string {
	result := s.result.Result
	making := !s.found && !s.resumed && result == fleet.Changed
	finding := s.found && result == fleet.Unchanged
	if w.DryRun || !making && !finding {
		return ""
	}
	return w.timesOf(s, s.found, s.task.Downloads())
}

// timesOf returns the name under which the times of a stage are stored. found reports whether an
// earlier run has already completed the stage.
func (w *work) timesOf(s *stage, found, downloads bool) string {
	kind := fmt.Sprintf("%s %s: %s", w.command, w.name(), label(s.kind, s.node))
	if found {
		kind += ", already done"
	}
	if downloads {
		kind += ", with downloads"
	}
	return kind
}
