package swap

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// rollBack restores every old binary and starts the services that ran before the transaction. It
// can begin after any step and be repeated, since each of its actions depends on which files exist.
// An error means that a destination does not have its old binary yet, or that the outcome is not in
// the journal yet.
func (t *transaction) rollBack(ctx context.Context, why *failure) error {
	// On a full disk the record cannot be written. Continue without it: removing the staged files makes room, and the
	// files themselves show the state.
	_ = t.note(RollingBack, why.component, "%v", why.err)

	// Repeat all steps after a failure: at a boot, the SCM may be starting one of the services from its new binary at
	// this very moment.
	err := retry(ctx, func() error { return t.restoreAll(ctx) })
	if _, only := errors.AsType[*stillRunsError](err); err != nil && (!only || ctx.Err() != nil) {
		return err
	}
	t.clearLeftovers()
	var down []string
	for _, name := range t.startOrder() {
		if err := retry(ctx, func() error { return t.start(ctx, name) }); err != nil {
			down = append(down, fmt.Sprintf("service %s does not start with its old binary either: %v", name, err))
		}
	}
	return t.finish(ctx, t.rolledBackOutcome(ctx, why, down))
}

func (t *transaction) restoreAll(ctx context.Context) error {
	if err := t.stopAgain(ctx); err != nil {
		return err
	}
	for _, c := range t.plan.Components {
		if err := t.restore(ctx, c); err != nil {
			return fmt.Errorf("restore the old %s: %w", c.Name, err)
		}
	}
	return t.removeStaged()
}

// removeStaged removes the new binaries after all old ones are restored. If one cannot be removed, the error is a
// *stillRunsError.
func (t *transaction) removeStaged() error {
	for _, c := range t.plan.Components {
		if !c.swaps() || c.revives() {
			continue
		}
		if err := t.Platform.Files.Remove(c.Staged); err != nil && !errors.Is(err, fault.ErrNotExist) {
			return &stillRunsError{c.Staged, err}
		}
	}
	return nil
}

// stillRunsError reports a new binary that cannot be removed after the old one was restored. If the
// SCM started a service from the new binary at a boot, that service must be stopped again. If any
// other program runs the new binary, such as a pod's shim, the undo does not fail: the next
// transaction removes the file as a leftover.
type stillRunsError struct {
	path string
	err  error
}

func (e *stillRunsError) Error() string {
	return fmt.Sprintf("remove the new binary %s: %v", e.path, e.err)
}
func (e *stillRunsError) Unwrap() error { return e.err }

// stopAgain stops the services that this transaction may have started from a new binary. If no swap
// of a file has begun, it stops no service, since no binary has changed.
func (t *transaction) stopAgain(ctx context.Context) error {
	if !t.journal.reached(Swapping) {
		return nil
	}
	for _, name := range t.journal.before().Running {
		if err := t.stop(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// restore restores one component's old binary and registration.
func (t *transaction) restore(ctx context.Context, c Component) error {
	if c.swaps() {
		if err := t.restoreFile(c); err != nil {
			return err
		}
	}
	if b := t.journal.before(); b != nil && c.CommandLine != "" {
		return t.setCommandLine(ctx, c.Service, b.CommandLines[c.Service])
	}
	return nil
}

func (t *transaction) restoreFile(c Component) error {
	files := t.Platform.Files
	swapped, err := t.swappedFile(c)
	if err != nil {
		return err
	}
	if swapped {
		if err := files.Rename(c.Destination, c.Staged, false); err != nil && !errors.Is(err, fault.ErrNotExist) {
			return err
		}
	}
	if c.creates() {
		return nil
	}
	return t.restoreOld(c)
}

// restoreOld renames the old binary back to the destination, unless it is there already. If another file is at the
// destination, another account put it there; restoreOld sets that file aside.
func (t *transaction) restoreOld(c Component) error {
	files := t.Platform.Files
	if t.isOld(c, c.Destination) {
		return nil
	}
	err := files.Rename(c.undo(), c.Destination, false)
	if errors.Is(err, fault.ErrExist) && t.isOld(c, c.undo()) {
		if err := t.setPlantedAside(c, c.Destination); err != nil {
			return err
		}
		err = files.Rename(c.undo(), c.Destination, false)
	}
	if errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	return err
}

// isOld reports whether the file at path is the file that was at the destination before the
// transaction.
func (t *transaction) isOld(c Component, path string) bool {
	b := t.journal.before()
	if b == nil {
		return false
	}
	id, known := b.Old[c.Name]
	info, err := t.Platform.Files.Stat(path)
	return known && err == nil && info.ID == id
}

// swappedFile reports whether the new binary is at the destination. The new binary is at the
// destination if the staged file is gone and, in a swap, the old binary was set aside; for a
// component that is created, there must be a file at the destination.
func (t *transaction) swappedFile(c Component) (bool, error) {
	staged, err := exists(t.Platform.Files, c.Staged)
	if err != nil || staged {
		return false, err
	}
	if c.creates() {
		return exists(t.Platform.Files, c.Destination)
	}
	return exists(t.Platform.Files, c.undo())
}

func exists(files platform.Files, path string) (bool, error) {
	_, err := files.Stat(path)
	if errors.Is(err, fault.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// retry repeats an action that a virus scanner or a slowly ending process can disturb briefly. It
// makes at most five attempts.
func retry(ctx context.Context, action func() error) error {
	return wait.Retry(ctx, func(error) bool { return true }, action)
}
