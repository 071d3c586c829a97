package swap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/wait"
)

// rollBack puts every old binary back and starts what ran before. It can begin
// anywhere and be repeated: each step looks at what is there. An error means
// that a destination does not have its old binary yet.
func (t *transaction) rollBack(ctx context.Context, why *failure) error {
	// On a full disk the record cannot be written. Go on without it: clearing
	// the staged files makes room, and the files themselves tell the rest.
	_ = t.note(RollingBack, why.component, "%v", why.err)

	// All of it again after a failure: at a boot, the SCM may be starting one of
	// the services from its new binary at this very moment.
	err := retry(ctx, func() error { return t.goBack(ctx) })
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

func (t *transaction) goBack(ctx context.Context) error {
	if err := t.stopAgain(ctx); err != nil {
		return err
	}
	for _, c := range slices.Backward(t.plan.Components) {
		if err := t.restore(ctx, c); err != nil {
			return fmt.Errorf("put the old %s back: %w", c.Name, err)
		}
	}
	return t.removeStaged()
}

// removeStaged removes the new binaries, once the old ones are all back. One that
// cannot be removed is a *stillRunsError.
func (t *transaction) removeStaged() error {
	for _, c := range t.plan.Components {
		if !c.swaps() || c.revives() {
			continue
		}
		if err := t.Host.Files.Remove(c.Staged); err != nil && !errors.Is(err, host.ErrNotExist) {
			return &stillRunsError{c.Staged, err}
		}
	}
	return nil
}

// stillRunsError is a new binary that cannot be removed after the old one is back.
// A service that the SCM started from it at a boot needs to be stopped again; any
// other program that runs it, such as a pod's shim, is no reason to fail the undo:
// the file is then a leftover for the next transaction to clear.
type stillRunsError struct {
	path string
	err  error
}

func (e *stillRunsError) Error() string {
	return fmt.Sprintf("remove the new binary %s: %v", e.path, e.err)
}
func (e *stillRunsError) Unwrap() error { return e.err }

// stopAgain stops what this transaction may have started. What it never got to
// stop is left running: its binary has not been touched.
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

// restore puts one component's old binary and registration back.
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
	files := t.Host.Files
	swapped, err := t.swappedFile(c)
	if err != nil {
		return err
	}
	if swapped {
		if err := files.Rename(c.Destination, c.Staged, false); err != nil && !errors.Is(err, host.ErrNotExist) {
			return err
		}
	}
	if c.creates() {
		return nil
	}
	return t.restoreOld(c)
}

// restoreOld gives the old binary its name back, unless it has it. What has the name
// instead another account put there.
func (t *transaction) restoreOld(c Component) error {
	files := t.Host.Files
	if t.isOld(c, c.Destination) {
		return nil
	}
	err := files.Rename(c.undo(), c.Destination, false)
	if errors.Is(err, host.ErrExist) && t.isOld(c, c.undo()) {
		if err := t.setPlantedAside(c, c.Destination); err != nil {
			return err
		}
		err = files.Rename(c.undo(), c.Destination, false)
	}
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	return err
}

// isOld reports whether the file at path is the one that stood at the destination
// before the transaction.
func (t *transaction) isOld(c Component, path string) bool {
	b := t.journal.before()
	if b == nil {
		return false
	}
	id, known := b.Old[c.Name]
	info, err := t.Host.Files.Stat(path)
	return known && err == nil && info.ID == id
}

// swappedFile is whether the new binary stands at the destination: the old one
// was set aside, or there was none, and the staged file has gone.
func (t *transaction) swappedFile(c Component) (bool, error) {
	staged, err := exists(t.Host.Files, c.Staged)
	if err != nil || staged {
		return false, err
	}
	if c.creates() {
		return exists(t.Host.Files, c.Destination)
	}
	return exists(t.Host.Files, c.undo())
}

func exists(files host.Files, path string) (bool, error) {
	_, err := files.Stat(path)
	if errors.Is(err, host.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// retry repeats what a virus scanner or a late process can spoil for a moment.
func retry(ctx context.Context, action func() error) error {
	return retryWhile(ctx, func(error) bool { return true }, action)
}

// retryWhile repeats it only after errors that may pass.
func retryWhile(ctx context.Context, passing func(error) bool, action func() error) error {
	const attempts = 5
	rest := 100 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err := action()
		if err == nil || attempt == attempts || !passing(err) {
			return err
		}
		if cut := wait.For(ctx, rest); cut != nil {
			return errors.Join(err, cut)
		}
		rest *= 2
	}
}
