package swap

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
)

// commit makes the swap final: the old binary becomes the previous one.
func (t *transaction) commit(ctx context.Context) error {
	notes := map[string]string{}
	for _, c := range t.plan.Components {
		if err := retry(ctx, func() error { return t.keepPrevious(c) }); err != nil {
			_ = setAside(t.Host.Files, c.undo(), layout.Aside(c.Destination, t.journal.id+"-undo"))
			notes[c.Name] = fmt.Sprintf("the new binary runs, but there is none to roll back to: %v", err)
		}
	}
	t.clearLeftovers()
	t.rememberHashes(ctx)
	return t.finish(ctx, t.committedOutcome(ctx, notes))
}

// keepPrevious keeps the old binary for a rollback by hand. An older one that is
// still being run cannot be replaced; it is moved out of the way, to be cleared
// by a later transaction.
func (t *transaction) keepPrevious(c Component) error {
	files := t.Host.Files
	err := files.Rename(c.undo(), c.previous(), true)
	if errors.Is(err, host.ErrNotExist) {
		return nil // nothing was replaced, or a guardian before this one did it
	}
	if errors.Is(err, host.ErrPermission) || errors.Is(err, host.ErrInUse) {
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

// setAside removes a file, or renames it to aside if that fails: a binary that
// still runs can be renamed but not removed. A file that does not exist is no error.
func setAside(files host.Files, path, aside string) error {
	removed := files.Remove(path)
	if removed == nil || errors.Is(removed, host.ErrNotExist) {
		return nil
	}
	if err := files.Rename(path, aside, false); err != nil && !errors.Is(err, host.ErrNotExist) {
		return errors.Join(removed, err)
	}
	return nil
}

// clearLeftovers removes staged and half-sent files beside the destinations. A
// file that will not go is no reason to fail; the next transaction tries again.
func (t *transaction) clearLeftovers() {
	for _, c := range t.plan.Components {
		for _, path := range leftovers(t.Host.Files, c.Destination) {
			_ = t.Host.Files.Remove(path)
		}
	}
}

// leftovers are staged and half-sent files beside a destination, and binaries
// that were set aside while they ran.
func leftovers(files host.Files, destination string) (paths []string) {
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

// rememberHashes saves the new binaries' hashes, so that the next look at them
// costs nothing.
func (t *transaction) rememberHashes(ctx context.Context) {
	hashes := hashcache.Load(t.Host.Files)
	for _, c := range t.plan.Components {
		_, _, _ = hashes.Hash(ctx, c.Destination)
		_, _, _ = hashes.Hash(ctx, c.previous())
	}
	_ = hashes.Save() // a cache: without it the next look reads the file
}
