package join

import (
	"context"
	"errors"
	"fmt"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// before returns the path at which swdt keeps a copy of the configuration file that was at path
// before the join.
func before(path string) string { return layout.Before(path) }

// putFile replaces a configuration file by swdt's file: it records the file, keeps a copy of a
// previous file that swdt did not write, and makes the change by one rename. restart names the
// services that read the file and must be restarted after the change.
func putFile(ctx context.Context, n *node.Node, step, path string, content []byte, restart ...string) error {
	if err := claimFile(ctx, n, step, path, restart...); err != nil {
		return err
	}
	return smallfile.Replace(ctx, n, path, content, "")
}

// claimFile records a configuration file, and keeps a copy of it, before the change.
func claimFile(ctx context.Context, n *node.Node, step, path string, restart ...string) error {
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
	return keepBefore(ctx, n, file)
}

// keepBefore copies a file that swdt did not write, before swdt's file replaces it. If the copy
// exists, keepBefore does nothing, since swdt's file may already be in place.
func keepBefore(ctx context.Context, n *node.Node, file fileRecord) error {
	if file.Before == "" {
		return nil
	}
	kept, err := smallfile.Exists(ctx, n, file.Before)
	if err != nil || kept {
		return err
	}
	content, err := smallfile.Read(ctx, n, file.Path)
	if errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return smallfile.Replace(ctx, n, file.Before, content, "")
}

// takeFileBack restores the configuration file that was in place before swdt's file. If there was
// none, it removes swdt's file.
func takeFileBack(ctx context.Context, n *node.Node, file fileRecord) error {
	if file.Before == "" {
		return smallfile.Remove(ctx, n, file.Path)
	}
	_, err := n.Files.Rename(ctx, &agentv1.RenameRequest{From: file.Before, To: file.Path, Replace: true})
	if err != nil && !errors.Is(err, fault.ErrNotExist) { // if the copy is missing, swdt has not replaced the file
		return fmt.Errorf("restore the previous %s: %w", file.Path, err)
	}
	for _, path := range []string{file.Path, file.Before} {
		if err := smallfile.RemoveUnfinished(ctx, n, path); err != nil {
			return err
		}
	}
	return nil
}

// takeFilesBack undoes a step that only changes configuration files.
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
