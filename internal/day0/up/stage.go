package up

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/localfile/earlier"
	"github.com/swdt-dev/swdt/internal/ui"
)

// The kinds of stages. Kinds returns them in their order.
const (
	Cluster = "cluster"
	Machine = "machine"
	Network = "network"
	Setup   = "setup"
	Join    = "join"
	Check   = "check"
)

// Kinds returns the kinds of stages in their order.
func Kinds() []string { return []string{Cluster, Network, Machine, Setup, Join, Check} }

// Skipped is the result of a stage that did not begin, since a stage that it needs has not
// succeeded, or since the command was interrupted.
const Skipped = "skipped"

// stage is one part of the work, of the cluster or of one node.
type stage struct {
	kind  string
	node  string // empty: the cluster
	needs []*stage
	run   func(context.Context, ui.Reporter) (done, error)

	task *ui.Task // shows the stage; nil: it is not shown
	// before returns how long the stage will probably take, according to earlier runs with or without a
	// download. elapsed is the time that the stage has run so far. If no earlier run is known, before is
	// nil or returns 0.
	before func(elapsed time.Duration, downloads bool) time.Duration
	// found reports whether an earlier run has completed the stage. resumed reports whether an earlier run
	// has begun the stage, but not completed it. Both only serve estimates.
	found, resumed bool

	ended  chan struct{} // closed when result is set
	result Stage
	err    error
}

// done is the success of a stage.
type done struct {
	changed bool
	message string
}

// Stage is the result of a stage, as printed.
type Stage struct {
	Stage string `json:"stage"`
	// Node is empty for the cluster.
	Node string `json:"node"`
	// Result is changed, unchanged, failed or skipped (Skipped).
	Result  string `json:"result"`
	Error   string `json:"error"`
	Message string `json:"message"`
	// Began is the time from the beginning of the command to the beginning of the stage. Seconds
	// is the duration of the stage. Before is the duration that was expected when the stage began, from
	// earlier runs on this machine; 0 if there is no earlier run to compare with. All are in seconds.
	Began   float64 `json:"began"`
	Seconds float64 `json:"seconds"`
	Before  float64 `json:"before"`
}

// runStages runs all stages, each as soon as the stages that it needs have succeeded. It returns
// when all stages have ended. The error joins the errors of the stages. If no stage has failed, but
// some were skipped because ctx ended, the error is the cause of ctx.
func runStages(ctx context.Context, all []*stage, reporter func(node string) ui.Reporter) ([]Stage, error) {
	begin := time.Now()
	var running sync.WaitGroup
	for _, s := range all {
		s.ended = make(chan struct{})
	}
	for _, s := range all {
		running.Go(func() {
			defer close(s.ended)
			s.await(ctx, begin, reporter)
		})
	}
	running.Wait()
	var results []Stage
	var errs []error
	for _, s := range all {
		results = append(results, s.result)
		if s.err != nil {
			errs = append(errs, &StageError{Kind: s.kind, Node: s.node, Err: s.err})
		}
	}
	skipped := func(s Stage) bool { return s.Result == Skipped }
	if len(errs) == 0 && ctx.Err() != nil && slices.ContainsFunc(results, skipped) {
		errs = append(errs, context.Cause(ctx))
	}
	return results, errors.Join(errs...)
}

// await waits for the stages that s needs, and runs s.
func (s *stage) await(ctx context.Context, begin time.Time, reporter func(node string) ui.Reporter) {
	s.result = Stage{Stage: s.kind, Node: s.node, Result: Skipped}
	for _, needed := range s.needs {
		<-needed.ended // does not block for long after ctx ends, since needed then ends too
		if !needed.succeeded() {
			s.result.Message = "needs " + label(needed.kind, needed.node)
			s.task.End(Skipped, s.result.Message)
			return
		}
	}
	if ctx.Err() != nil {
		s.result.Message = "interrupted"
		s.task.End(Skipped, s.result.Message)
		return
	}
	r := reporter(s.node)
	at := time.Now()
	if s.before != nil {
		s.result.Before = s.before(0, false).Seconds()
	}
	s.task.Begin(func(elapsed time.Duration, downloads bool) string {
		if s.before == nil {
			return ""
		}
		return earlier.About(s.before(elapsed, downloads))
	})
	r.Debug("stage %s begins", s.kind) // tests find each stage by this message and the one below
	done, err := s.run(ctx, r)
	ui.Done(r)
	s.result.Began, s.result.Seconds = at.Sub(begin).Seconds(), time.Since(at).Seconds()
	s.result.Result, s.result.Message = fleet.Unchanged, done.message
	switch {
	case err != nil:
		s.err, s.result.Result, s.result.Error = err, fleet.Failed, err.Error()
	case done.changed:
		s.result.Result = fleet.Changed
	}
	s.task.End(s.result.Result, cmp.Or(s.result.Error, s.result.Message))
	r.Debug("stage %s has ended", s.kind)
}

// label names a stage for people.
func label(kind, node string) string {
	if node == "" {
		return kind
	}
	return kind + " of " + node
}

// StageError is the failure of a stage.
type StageError struct {
	Kind, Node string // Node is empty for the cluster
	Err        error
}

func (e *StageError) Error() string { return label(e.Kind, e.Node) + ": " + e.Err.Error() }
func (e *StageError) Unwrap() error { return e.Err }
