package swap

import (
	"context"
	"errors"
	"time"

	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// rollBack restores every old binary and starts the services that ran before the transaction. It
// can begin after any step and be repeated, since each of its actions depends on which files exist.
// It does not give up while this process lives: a program that holds a binary closes it at some time. An error means
// that ctx has ended, or that the outcome is not in the journal yet.
func (t *transaction) rollBack(ctx context.Context, why *failure) error {
	// On a full disk the record cannot be written. Continue without it: removing the staged files makes room, and the
	// files themselves show the state.
	_ = t.note(RollingBack, why.component, "%v", why.err)

	t.versions.giveUp()
	u := &undoing{transaction: t, restored: map[string]time.Time{}, back: map[string]bool{}}
	err := wait.Condition{
		Name: "the old binaries to be in place", Interval: firstUndoPause, MaxInterval: longestUndoPause,
		Look: u.round,
	}.Wait(ctx)
	if err != nil {
		return err
	}
	t.clearLeftovers()
	down := u.startRest(ctx)
	if len(down) > 0 && t.ends(ctx) { // the next guardian starts them
		return ctx.Err()
	}
	return t.finish(ctx, t.rolledBackOutcome(ctx, why, down))
}

// restore restores one component's old binary and registration.
func (t *transaction) restore(ctx context.Context, c Component) error {
	if c.swaps() {
		if err := t.restoreFile(ctx, c); err != nil {
			return err
		}
	}
	if b := t.journal.before(); b != nil && c.CommandLine != "" {
		err := t.setCommandLine(ctx, c.Service, b.CommandLines[c.Service])
		if !errors.Is(err, fault.ErrNoService) { // a service that was deleted meanwhile has no command line
			return err
		}
	}
	return nil
}

func (t *transaction) restoreFile(ctx context.Context, c Component) error {
	files := t.Platform.Files
	swapped, err := t.swappedFile(c)
	if err != nil {
		return err
	}
	if swapped {
		if err := files.Rename(c.Destination, c.Staged, false); err != nil && !errors.Is(err, fault.ErrNotExist) {
			return t.described(c.Destination, err)
		}
	}
	if c.creates() {
		return nil
	}
	return t.restoreOld(ctx, c)
}

// restoreOld renames the old binary back to the destination, unless it is there already. If another file is at the
// destination, another account put it there; restoreOld sets that file aside.
func (t *transaction) restoreOld(ctx context.Context, c Component) error {
	files := t.Platform.Files
	if t.isOld(c, c.Destination) {
		return nil
	}
	err := files.Rename(c.undo(), c.Destination, false)
	if errors.Is(err, fault.ErrExist) && t.isOld(c, c.undo()) {
		if err := t.setPlantedAside(ctx, c, c.Destination); err != nil {
			return err
		}
		err = files.Rename(c.undo(), c.Destination, false)
	}
	if err == nil || errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	return t.described(c.undo(), err)
}

// described returns an error of a rename with the names of the programs that hold the file.
func (t *transaction) described(path string, err error) error {
	if !fault.IsHeld(err) {
		return err
	}
	return patience.Describe(t.Platform.Files, path, err)
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
