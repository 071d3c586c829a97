// Package plan runs an ordered list of small idempotent steps against a node.
// A step can say what it would change without changing it, so a dry run is the
// same code, and a second run finds nothing to do.
//
//   - plan.go: what a step is, and the same the other way round
//   - run.go: comparing, then applying; reboot.go: going on after a reboot
//   - lock.go: one swdt at a time; result.go: what is told of it
package plan

import (
	"context"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Change is what a step would do. The zero Change is nothing to do.
type Change struct {
	// Needed is whether anything differs from what is wanted.
	Needed bool
	// Summary is one line for people, which a terminal has room for: "enable Remote
	// Desktop".
	Summary string
	// Detail is the whole of what Summary sums up; usually empty.
	Detail string
}

// Outcome is what a step did.
type Outcome struct {
	Message        string // beyond the change's summary; usually empty
	RebootRequired bool   // takes effect, or the next step can run, only after a reboot
}

// Step is one idempotent change of a node.
type Step interface {
	Name() string
	// Plan compares the node with what is wanted; it changes nothing.
	Plan(ctx context.Context, n *node.Node) (Change, error)
	// Apply makes the change that Plan found.
	Apply(ctx context.Context, n *node.Node, r ui.Reporter) (Outcome, error)
}

// Needs is implemented by steps that make no sense unless others, by name, have
// done their work.
type Needs interface{ Needs() []string }

// Follows is implemented by steps that have something to do because another
// step changed something: a restart after a change of what the service reads.
// Such a step is compared with the node again right before its turn.
type Follows interface {
	// Follows names those steps.
	Follows() []string
	// FollowUp is the summary of what comes after a change of one of them, where
	// the node as it is needs nothing.
	FollowUp() string
}

// Undoable is implemented by steps that can be taken back.
type Undoable interface {
	Step
	// PlanUndo says what of the step's work stands on the node.
	PlanUndo(ctx context.Context, n *node.Node) (Change, error)
	// Undo takes that back.
	Undo(ctx context.Context, n *node.Node, r ui.Reporter) (Outcome, error)
}

// Undo is the plan that takes steps back, the last first. Those that are not
// Undoable are left out.
func Undo(steps []Step) []Step {
	var undone []Step
	for i := len(steps) - 1; i >= 0; i-- {
		if step, ok := steps[i].(Undoable); ok {
			undone = append(undone, undo{step})
		}
	}
	return undone
}

// undo is a step the other way round.
type undo struct{ step Undoable }

func (u undo) Name() string { return u.step.Name() }

func (u undo) Plan(ctx context.Context, n *node.Node) (Change, error) {
	return u.step.PlanUndo(ctx, n)
}

func (u undo) Apply(ctx context.Context, n *node.Node, r ui.Reporter) (Outcome, error) {
	return u.step.Undo(ctx, n, r)
}
