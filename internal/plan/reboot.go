package plan

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// rebootTimeout is long enough for Windows to finish the installation of features while it
// boots.
const rebootTimeout = 20 * time.Minute

// rebootAfter reboots the node after step i, verifies that the step has nothing left to do, and
// compares the later steps with the node again.
func (run *runner) rebootAfter(ctx context.Context, i int) error {
	step, result := run.steps[i], &run.results[i]
	run.reporter.Step("rebooting for %s", step.Name())
	if err := run.reboot(ctx, "swdt: "+result.Change); err != nil {
		return fmt.Errorf("reboot: %w", err)
	}
	// The reboot ended the session, and the lock with it.
	if err := run.lock(ctx); err != nil {
		return err
	}
	change, err := step.Plan(ctx)
	if err != nil {
		return fmt.Errorf("compare with the node after the reboot: %w", err)
	}
	if change.Needed {
		return fmt.Errorf("still needed after the reboot: %s", change.Summary)
	}
	result.Message = strings.TrimPrefix(result.Message+"; rebooted", "; ")
	return run.planAgain(ctx, i+1)
}

// planAgain compares the steps from run.steps[from] on with the node again, since a reboot may have
// completed or undone their changes. It omits the steps that have failed.
func (run *runner) planAgain(ctx context.Context, from int) error {
	for i := from; i < len(run.steps); i++ {
		if state := run.results[i].State; state != Skipped && state != OK {
			continue
		}
		change, err := run.compare(ctx, run.steps[i])
		switch {
		case err != nil:
			run.fail(i, fmt.Errorf("compare with the node after the reboot: %w", err))
			if ctx.Err() != nil || run.isLost(err) {
				return err
			}
		case change.Needed:
			run.results[i] = StepResult{Name: run.steps[i].Name(), Change: change.Summary, Detail: change.Detail,
				State: Skipped}
		default:
			run.results[i] = StepResult{Name: run.steps[i].Name(), State: OK, Message: change.Summary}
		}
	}
	return nil
}

// reboot restarts the machine and waits for it. If the connection breaks before the agent has
// answered, that is not a failure: the node may shut down before the agent answers, or the step's
// own installer may have begun the reboot.
func (run *runner) reboot(ctx context.Context, reason string) error {
	if err := run.opts.Machine.Reboot(ctx, reason); err != nil && !run.isLost(err) {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, rebootTimeout)
	defer cancel()
	if err := run.opts.Machine.AwaitReboot(waiting, run.bootID); err != nil {
		return err
	}
	return run.noteBoot(ctx)
}

// begin locks the machine and, if a reboot is allowed, records the present boot id.
func (run *runner) begin(ctx context.Context) error {
	if err := run.lock(ctx); err != nil || !run.opts.AllowReboot {
		return err
	}
	return run.noteBoot(ctx)
}

func (run *runner) noteBoot(ctx context.Context) (err error) {
	if run.bootID, err = run.opts.Machine.BootID(ctx); err != nil {
		return fmt.Errorf("read the boot id: %w", err)
	}
	return nil
}
