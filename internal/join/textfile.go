package join

import (
	"context"
	"errors"
	"fmt"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/layout"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/smallfile"
)

// before is where somebody else's configuration file is kept while ours stands
// in its place.
func before(path string) string { return layout.Before(path) }

// putFile makes a configuration file ours: it is written down, somebody else's
// is kept, and the change is one rename. restart are the services that read it.
func putFile(ctx context.Context, n *node.Node, step, path string, content []byte, restart ...string) error {
	there, err := smallfile.Exists(ctx, n, path)
	if err != nil {
		return err
	}
	var file fileRecord
	err = update(ctx, n, func(r *record) {
		f := fileRecord{Path: path, Step: step, Existed: there}
		if there {
			f.Before = before(path)
		}
		r.addFile(f)
		file = *r.file(path)
		for _, name := range restart {
			if r.service(name) != nil {
				r.addRestart(name)
			}
		}
	})
	if err != nil {
		return err
	}
	if err := keepBefore(ctx, n, file); err != nil {
		return err
	}
	return smallfile.Replace(ctx, n, path, content, "")
}

// keepBefore copies somebody else's file. As long as there is no copy, ours has
// not taken its place.
func keepBefore(ctx context.Context, n *node.Node, file fileRecord) error {
	if file.Before == "" {
		return nil
	}
	kept, err := smallfile.Exists(ctx, n, file.Before)
	if err != nil || kept {
		return err
	}
	content, err := smallfile.Read(ctx, n, file.Path)
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return smallfile.Replace(ctx, n, file.Before, content, "")
}

// takeFileBack removes a configuration file of ours, or puts the one of before
// back.
func takeFileBack(ctx context.Context, n *node.Node, file fileRecord) error {
	if file.Before == "" {
		return smallfile.Remove(ctx, n, file.Path)
	}
	_, err := n.Files.Rename(ctx, &agentv1.RenameRequest{From: file.Before, To: file.Path, Replace: true})
	if err != nil && !errors.Is(err, host.ErrNotExist) { // else it never left its place
		return fmt.Errorf("put the %s of before back: %w", file.Path, err)
	}
	for _, path := range []string{file.Path, file.Before} {
		if err := smallfile.RemoveUnfinished(ctx, n, path); err != nil {
			return err
		}
	}
	return nil
}

// takeFilesBack is the undo of a step whose work is configuration files.
func takeFilesBack(ctx context.Context, n *node.Node, step string) error {
	r, err := load(ctx, n)
	if err != nil {
		return err
	}
	for _, file := range r.filesOf(step) {
		if err := takeFileBack(ctx, n, file); err != nil {
			return err
		}
	}
	return update(ctx, n, func(r *record) { r.dropFiles(step) })
}
