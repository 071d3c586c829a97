package swap

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/agent/internal/patience"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// commit makes the swap final: the old binary becomes the previous one.
func (t *transaction) commit(ctx context.Context) error {
	notes := map[string]string{}
	for _, c := range t.plan.Components {
		// Nothing is stopped now, and without the old binary there is no rollback by hand.
		keep := t.patience(c, patience.Long)
		if err := keep.Repeat(ctx, c.undo, fault.IsHeld, func() error { return t.keepPrevious(c) }); err != nil {
			_ = setAside(t.Platform.Files, c.undo(), layout.Aside(c.Destination, t.journal.id+"-undo"))
			notes[c.Name] = fmt.Sprintf("the new binary runs, but the old one was not kept for a rollback: %v", err)
		}
	}
	t.clearLeftovers()
	t.askVersions(ctx) // an earlier guardian may have begun this commit
	asked := t.versions.await()
	t.rememberHashes(ctx)
	return t.finish(ctx, t.committedOutcome(ctx, notes, asked))
}

// keepPrevious keeps the old binary for a rollback by hand. It replaces the previous binary of an
// earlier swap. If a program still runs that previous binary, keepPrevious moves the previous
// binary aside instead, and a later transaction removes it.
func (t *transaction) keepPrevious(c Component) error {
	files := t.Platform.Files
	err := files.Rename(c.undo(), c.previous(), true)
	if errors.Is(err, fault.ErrNotExist) {
		return nil // nothing was replaced, or an earlier guardian kept the old binary already
	}
	if fault.IsHeld(err) {
		if err := setAside(files, c.previous(), layout.Aside(c.Destination, t.journal.id)); err != nil {
			return fmt.Errorf("set the previous binary aside: %w", err)
		}
		err = files.Rename(c.undo(), c.previous(), false)
	}
	if err != nil {
		return fmt.Errorf("keep the old binary: %w", err)
	}
	return nil
}

// setAside removes a file. If that fails, it renames the file to the path `aside`: a binary that
// still runs can be renamed but not removed. A missing file is not an error.
func setAside(files platform.Files, path, aside string) error {
	removed := files.Remove(path)
	if removed == nil || errors.Is(removed, fault.ErrNotExist) {
		return nil
	}
	if err := files.Rename(path, aside, false); err != nil && !errors.Is(err, fault.ErrNotExist) {
		return errors.Join(removed, err)
	}
	return nil
}

// setAsidePatiently is like setAside, and waits while another program holds the file.
func setAsidePatiently(ctx context.Context, p patience.Patience, path, aside string) error {
	return p.Repeat(ctx, func() string { return path }, fault.IsHeld, func() error { return setAside(p.Files, path, aside) })
}

// clearLeftovers removes the files that leftovers returns. It ignores files that cannot be removed;
// the next transaction tries again.
func (t *transaction) clearLeftovers() {
	for _, c := range t.plan.Components {
		for _, path := range leftovers(t.Platform.Files, c.Destination) {
			_ = t.Platform.Files.Remove(path)
		}
	}
}

// leftovers returns the staged and partially sent files beside a destination, and the binaries that were set aside
// because programs still ran them.
func leftovers(files platform.Files, destination string) (paths []string) {
	folder := destination[:len(destination)-len(baseName(destination))]
	entries, err := files.List(folder)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		path := folder + baseName(entry.Path)
		if !entry.Folder && layout.IsLeftover(destination, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// rememberHashes saves the hashes and versions of the new and the previous binaries, so that the next inspection
// need not read these files.
func (t *transaction) rememberHashes(ctx context.Context) {
	for _, c := range t.plan.Components {
		_, _, _ = t.Hashes.Hash(ctx, c.Destination)
		_, _, _ = t.Hashes.Hash(ctx, c.previous())
	}
	_ = t.Hashes.Save() // if this fails, the next inspection reads the files
}
