package live

import (
	"context"
	"errors"
	"sync"

	"github.com/swdt-dev/swdt/internal/push/watch"
)

// ErrNewBuild is the cause of a context that a new build has ended.
var ErrNewBuild = errors.New("a new build is about to be pushed")

// After runs something after each pushed build, such as tests. It runs once all nodes that are being pushed
// to have the build.
//
// A new build ends a run that has not ended: its result would not be about the new build, and the nodes
// change below it. The build is made and sent while the run goes on, but before a node is changed, the run
// is interrupted, and the push waits until it has cleaned up.
type After struct {
	// Run runs until it is done, or soon after ctx has ended.
	Run func(ctx context.Context)
	// NotRun is called in place of Run if the push to these nodes has failed.
	NotRun func(nodes []string)

	mutex   sync.Mutex
	ctx     context.Context
	nodes   map[string]state
	order   []string // the names of nodes, in the order of their first push
	cancel  context.CancelCauseFunc
	ended   chan struct{} // closed when the present run has ended; nil: none was begun
	due     bool          // a push has ended well since the last run was begun
	stopped bool
}

// state is the state of a node.
type state int

const (
	idle state = iota
	pushing
	failed // the last push
)

// Begin must be called before the watch begins. Runs end when ctx ends.
func (a *After) Begin(ctx context.Context) { a.ctx, a.nodes = ctx, map[string]state{} }

// Report takes in an event of the watch. It does not wait for a run.
func (a *After) Report(e watch.Event) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if _, known := a.nodes[e.Node]; !known && e.Node != "" {
		a.order = append(a.order, e.Node)
	}
	switch e.Kind {
	case watch.Pushing, watch.Superseded: // a superseded push is followed by another one
		a.nodes[e.Node] = pushing
	case watch.Failed:
		if a.nodes[e.Node] == pushing { // else no connection was made, or no rollback
			a.nodes[e.Node] = failed
			a.begin()
		}
	case watch.Pushed, watch.RolledBack:
		a.nodes[e.Node], a.due = idle, true
		a.begin()
	}
}

// begin begins a run, if one is due and no node is being pushed to. The mutex is held.
func (a *After) begin() {
	var bad []string
	for _, name := range a.order {
		switch a.nodes[name] {
		case pushing:
			return
		case failed:
			bad = append(bad, name)
		}
	}
	switch {
	case !a.due || a.stopped:
		return
	case len(bad) > 0:
		a.due = false
		a.NotRun(bad)
		return
	}
	a.due = false
	if a.running() { // a push that has changed nothing has not interrupted it
		return
	}
	ctx, cancel := context.WithCancelCause(a.ctx)
	ended := make(chan struct{})
	a.cancel, a.ended = cancel, ended
	go func() {
		defer close(ended)
		defer cancel(nil)
		a.Run(ctx)
	}()
}

func (a *After) running() bool {
	if a.ended == nil {
		return false
	}
	select {
	case <-a.ended:
		return false
	default:
		return true
	}
}

// Interrupt ends the present run, since a node is about to change, and waits until the run has ended or ctx
// ends.
func (a *After) Interrupt(ctx context.Context) {
	a.mutex.Lock()
	ended := a.ended
	if ended != nil {
		a.cancel(ErrNewBuild)
	}
	a.mutex.Unlock()
	if ended == nil {
		return
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// End ends the present run, waits until it has ended, and keeps further ones from being begun.
func (a *After) End() {
	a.mutex.Lock()
	a.stopped = true
	ended := a.ended
	if ended != nil {
		a.cancel(context.Canceled)
	}
	a.mutex.Unlock()
	if ended != nil {
		<-ended
	}
}
