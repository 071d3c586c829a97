package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/ui"
)

// Options configure a run of a plan.
type Options struct {
	// DryRun makes Run plan the steps without changing anything.
	DryRun bool
	// AllowReboot lets Run reboot the node if a step needs a reboot.
	AllowReboot bool
	// Ordered reports whether each step needs all previous steps. If false, a step is
	// tried even if a previous step failed, unless its Needs names that step.
	Ordered bool
	// Around is called when a change is needed and the node is locked. It must call its argument,
	// which applies the steps, for example while the node is drained. If Around is nil, Run applies the
	// steps directly.
	Around func(ctx context.Context, apply func(context.Context) error) error
	// Machine is the node that the steps change: Run locks it, and reboots it if AllowReboot is set. nil: the steps change
	// something else, which Elsewhere names, such as "the cluster".
	Machine   Machine
	Elsewhere string
	// Holder names this run as the holder of the node's lock. Another swdt that tries to lock the
	// node prints this name in its error. Empty: the result of Holder("setup").
	Holder string
}

// Machine is the machine that a plan changes. *node.Node is one.
type Machine interface {
	// Lock makes the caller the only swdt that changes the machine, until Unlock or the end of the session. The error is a
	// *fault.LockedError if another one does.
	Lock(ctx context.Context, holder string) error
	Unlock(ctx context.Context) error
	// BootID returns a text that another boot changes.
	BootID(ctx context.Context) (string, error)
	// Reboot asks the machine to reboot.
	Reboot(ctx context.Context, reason string) error
	// AwaitReboot returns once the machine answers with a boot id other than bootID.
	AwaitReboot(ctx context.Context, bootID string) error
	// IsLost reports whether an error of a step means that the connection is lost, so that no further call can succeed.
	IsLost(err error) bool
}

// dryRun is the message of a needed step until the step is applied or gets another message.
const dryRun = "dry run"

// Run plans every step before it applies the first. If a step cannot be compared,
// Run changes nothing. If every step can be compared and opts.DryRun is not set, Run locks
// the machine and applies the needed steps in order. It returns one result for each step, in the
// order of steps, even if it returns an error.
func Run(ctx context.Context, steps []Step, opts Options, r ui.Reporter) ([]StepResult, error) {
	run := &runner{steps: steps, opts: opts, reporter: r, results: make([]StepResult, len(steps)),
		errs: make([]error, len(steps))}
	needed, err := run.planAll(ctx)
	if err != nil || needed == 0 || opts.DryRun {
		return run.results, err
	}
	if opts.Machine != nil {
		if err := run.begin(ctx); err != nil {
			run.skipRest(0, "the node could not be locked")
			return run.results, err
		}
		defer run.unlock(ctx)
	}
	if opts.Around == nil {
		return run.results, run.applyAll(ctx)
	}
	err = opts.Around(ctx, run.applyAll)
	run.explain("not tried") // has an effect only if Around has not called applyAll
	return run.results, err
}

type runner struct {
	steps    []Step
	opts     Options
	reporter ui.Reporter
	results  []StepResult
	errs     []error // the error of each step; nil if the step has not failed
	bootID   string  // the node's boot id; empty unless a reboot is allowed
}

// planAll fills in every result: ok, skipped (needed, not done yet) or failed. It returns the
// number of needed steps.
func (run *runner) planAll(ctx context.Context) (needed int, err error) {
	if run.opts.Machine != nil {
		run.reporter.Step("comparing the node with the node file")
	} else {
		run.reporter.Step("comparing %s with the wanted state", run.opts.Elsewhere)
	}
	for i, step := range run.steps {
		run.reporter.Debug("comparing %s", step.Name())
		change, planErr := run.compare(ctx, step)
		switch {
		case planErr != nil:
			run.fail(i, fmt.Errorf("compare with %s: %w", run.subject(), planErr))
			if ctx.Err() != nil || run.isLost(planErr) {
				run.abandon(i+1, "not compared")
				return 0, run.failures()
			}
		case change.Needed:
			needed++
			run.results[i] = StepResult{Name: step.Name(), Change: change.Summary, Detail: change.Detail,
				State: Skipped, Message: dryRun}
			run.detail(i)
		default:
			run.results[i] = StepResult{Name: step.Name(), State: OK, Message: change.Summary}
		}
	}
	err = run.failures()
	if err != nil {
		run.skipRest(0, "nothing was changed")
	}
	return needed, err
}

func (run *runner) applyAll(ctx context.Context) error {
	for i := range run.steps {
		// step i could not be compared with the node after a reboot
		if run.opts.Ordered && run.results[i].State == Failed {
			run.skipRest(i+1, "not tried")
			break
		}
		if run.results[i].State != Skipped && !run.followsChange(i) {
			continue
		}
		if missing := run.missing(i); missing != "" {
			run.results[i].Message = fmt.Sprintf("not tried: %s did not succeed", missing)
			continue
		}
		if err := run.apply(ctx, i); err != nil {
			run.fail(i, err)
			if ctx.Err() != nil || run.isLost(err) || run.opts.Ordered {
				run.skipRest(i+1, "not tried")
				break
			}
		}
		if run.opts.Ordered && run.results[i].State == RebootRequired {
			run.skipRest(i+1, "not tried before the reboot")
			break
		}
	}
	if err := run.failures(); err != nil {
		return err
	}
	if waiting := run.named(RebootRequired); len(waiting) > 0 {
		return &RebootRequiredError{Steps: waiting}
	}
	return nil
}

func (run *runner) apply(ctx context.Context, i int) error {
	step, result := run.steps[i], &run.results[i]
	if following, ok := step.(Follows); ok && len(following.Follows()) > 0 {
		if needed, err := run.stillNeeded(ctx, i); err != nil || !needed {
			return err
		}
	}
	run.reporter.Step("%s: %s", step.Name(), result.Change)
	outcome, err := step.Apply(ctx, run.reporter)
	if err != nil {
		return err
	}
	if outcome.Waited {
		*result = StepResult{Name: step.Name(), State: OK, Message: outcome.Message}
		return nil
	}
	result.State, result.Message = Changed, outcome.Message
	if !outcome.RebootRequired {
		run.reporter.Debug("%s: done", step.Name())
		return nil
	}
	if !run.opts.AllowReboot {
		result.State = RebootRequired
		if result.Message == "" {
			result.Message = "takes effect after a reboot"
		}
		return nil
	}
	return run.rebootAfter(ctx, i)
}

// stillNeeded compares a step again right before its turn, updates its result, and reports whether
// the step is needed.
func (run *runner) stillNeeded(ctx context.Context, i int) (bool, error) {
	change, err := run.steps[i].Plan(ctx)
	if err != nil {
		return false, fmt.Errorf("compare with %s: %w", run.subject(), err)
	}
	if !change.Needed {
		run.results[i] = StepResult{Name: run.steps[i].Name(), State: OK, Message: change.Summary}
		return false, nil
	}
	run.results[i].Change, run.results[i].Detail = change.Summary, change.Detail
	return true, nil
}

// detail reports the details of a change at debug level.
func (run *runner) detail(i int) {
	if result := run.results[i]; result.Detail != "" {
		run.reporter.Debug("%s: %s", result.Name, result.Detail)
	}
}

func (run *runner) fail(i int, err error) {
	run.errs[i] = err
	run.results[i].Name = run.steps[i].Name()
	run.results[i].State = Failed
	run.results[i].Message = err.Error()
	run.reporter.Debug("%s: %v", run.steps[i].Name(), err)
}

func (run *runner) failures() error {
	failed := &FailedError{Steps: run.named(Failed)}
	for _, err := range run.errs {
		if err != nil {
			failed.Errs = append(failed.Errs, err)
		}
	}
	if len(failed.Errs) == 0 {
		return nil
	}
	return failed
}

// subject returns the name of the thing that the steps change.
func (run *runner) subject() string { return cmp.Or(run.opts.Elsewhere, "the node") }

// skipRest records the reason why the needed steps from run.steps[from] on are not tried.
func (run *runner) skipRest(from int, why string) {
	for i := from; i < len(run.steps); i++ {
		if run.results[i].State == Skipped {
			run.results[i].Message = why
		}
	}
}

// explain records a reason for the skipped steps that do not have a reason yet.
func (run *runner) explain(why string) {
	for i := range run.results {
		if run.results[i].State == Skipped && run.results[i].Message == dryRun {
			run.results[i].Message = why
		}
	}
}

// abandon marks the steps from run.steps[from] on as skipped, since they were never compared. It
// also records that none of the earlier needed steps has changed anything.
func (run *runner) abandon(from int, why string) {
	run.skipRest(0, "nothing was changed")
	for i := from; i < len(run.steps); i++ {
		run.results[i] = StepResult{Name: run.steps[i].Name(), State: Skipped, Message: why}
	}
}

func (run *runner) named(state State) []string {
	var names []string
	for _, result := range run.results {
		if result.State == state {
			names = append(names, result.Name)
		}
	}
	return names
}

// compare returns the change that the step needs. If the step needs no change but follows a step
// that will make one, compare returns a change with the step's FollowUp, unless that is empty.
func (run *runner) compare(ctx context.Context, step Step) (Change, error) {
	change, err := step.Plan(ctx)
	following, ok := step.(Follows)
	if !ok || err != nil || change.Needed || !run.anyOf(following.Follows(), Skipped) {
		return change, err
	}
	if text := following.FollowUp(); text != "" {
		return Change{Needed: true, Summary: text}, nil
	}
	return change, nil
}

// followsChange reports whether step i needed nothing at first, but follows a step that has
// made a change since then.
func (run *runner) followsChange(i int) bool {
	following, ok := run.steps[i].(Follows)
	return ok && run.results[i].State == OK && run.anyOf(following.Follows(), Changed)
}

// anyOf reports whether one of these steps is in the given state.
func (run *runner) anyOf(names []string, state State) bool {
	return slices.ContainsFunc(run.results, func(result StepResult) bool {
		return result.State == state && slices.Contains(names, result.Name)
	})
}

// missing returns the name of the first step that step i needs and that has not succeeded, or
// "".
func (run *runner) missing(i int) string {
	needs, ok := run.steps[i].(Needs)
	if !ok {
		return ""
	}
	for _, name := range needs.Needs() {
		for j, result := range run.results {
			if j != i && result.Name == name && result.State != OK && result.State != Changed {
				return name
			}
		}
	}
	return ""
}

// isLost reports whether err means that the connection to the machine is lost.
func (run *runner) isLost(err error) bool {
	return run.opts.Machine != nil && run.opts.Machine.IsLost(err)
}
