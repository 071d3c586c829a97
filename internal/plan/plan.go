// Package plan runs an ordered list of small idempotent steps. A step holds what it changes: a node, a cluster. It can report
// what it would change without changing it, so a dry run executes the same code, and a second run
// finds nothing to do.
//
//   - plan.go: steps, and how to undo them
//   - run.go: comparing, then applying; reboot.go: continuing after a reboot
//   - lock.go: one swdt at a time; result.go: the results
package plan

import (
	"context"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Change is the change that a step would make. The zero Change means nothing to do.
type Change struct {
	// Needed reports whether the present state differs from the wanted one.
	Needed bool
	// Summary is one line for people that fits on a terminal, such as "enable Remote
	// Desktop". If Needed is false, Summary describes the present state, or is empty.
	Summary string
	// Detail is the full text that Summary shortens; usually empty.
	Detail string
}

// Outcome is the result of a step that was applied.
type Outcome struct {
	// Message is a text in addition to the change's summary, and usually empty. If Waited is set, it
	// replaces the summary.
	Message string
	// Waited reports whether the step only waited until the state was as wanted, and changed nothing.
	// The step's result is then OK, as if no wait had been necessary.
	Waited bool
	// RebootRequired reports whether the change takes effect, or the next step can run, only after a
	// reboot.
	RebootRequired bool
}

// Step is one idempotent change of what it holds.
type Step interface {
	Name() string
	// Plan compares the present state with the wanted one; it changes nothing.
	Plan(ctx context.Context) (Change, error)
	// Apply makes the change that Plan found.
	Apply(ctx context.Context, r ui.Reporter) (Outcome, error)
}

// Needs is implemented by steps that are useless unless other steps have succeeded. Its
// method returns the names of those steps.
type Needs interface{ Needs() []string }

// Follows is implemented by steps that become necessary because another step changed
// something. An example is a restart after a change of the service's configuration. Such a
// step is compared with the node again right before its turn, if it was needed at first or
// one of the steps that it follows made a change.
type Follows interface {
	// Follows returns the names of the steps that this step follows.
	Follows() []string
	// FollowUp returns the summary of this step's work after one of the steps that it follows has
	// made a change; "" if no work is expected then. A dry run shows this summary if the step needs
	// nothing yet, but a step that it follows would make a change.
	FollowUp() string
}

// Undoable is implemented by steps that can be undone.
type Undoable interface {
	Step
	// PlanUndo returns the change that Undo would make; it changes nothing.
	PlanUndo(ctx context.Context) (Change, error)
	// Undo makes the change that PlanUndo found.
	Undo(ctx context.Context, r ui.Reporter) (Outcome, error)
}

// Undo returns the plan that undoes steps, the last step first. It omits steps that are
// not Undoable.
func Undo(steps []Step) []Step {
	var undone []Step
	for i := len(steps) - 1; i >= 0; i-- {
		if step, ok := steps[i].(Undoable); ok {
			undone = append(undone, undo{step})
		}
	}
	return undone
}

// undo is the inverse of a step.
type undo struct{ step Undoable }

func (u undo) Name() string { return u.step.Name() }

func (u undo) Plan(ctx context.Context) (Change, error) {
	return u.step.PlanUndo(ctx)
}

func (u undo) Apply(ctx context.Context, r ui.Reporter) (Outcome, error) {
	return u.step.Undo(ctx, r)
}
