package join

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/swdt-dev/swdt/internal/containerdconfig"
	"github.com/swdt-dev/swdt/internal/deploy"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/smallfile"
	"github.com/swdt-dev/swdt/internal/ui"
)

// configureAhead replaces containerd, by push, with the node file's new wishes in
// its configuration already, so that one restart brings both.
//
// The configuration is the one that the present containerd generates: it reads it
// too, should the node go back to it. Where the new one generates another, the step
// after this one writes that, and containerd is restarted once more.
func (s *binaries) configureAhead(ctx context.Context, n *node.Node, r ui.Reporter, push func() error) error {
	present, wanted, err := s.newWishes(ctx, n, r)
	if err != nil {
		return err
	}
	if wanted == nil {
		return push()
	}
	if err := putFile(ctx, n, stepContainerdConfig, containerdToml, wanted, containerdName); err != nil {
		return err
	}
	if err := push(); err != nil {
		if ctx.Err() == nil && !lost(err) { // else the next run begins with this configuration
			err = errors.Join(err, putFile(ctx, n, stepContainerdConfig, containerdToml, present, containerdName))
		}
		return err
	}
	return update(ctx, n, func(r *record) { r.dropRestart(containerdName) })
}

// newWishes returns containerd's configuration, and the one that the present
// containerd generates from the node file; nil where that is the same, or the file is
// not swdt's to change yet: then its own step says what becomes of it.
func (s *binaries) newWishes(ctx context.Context, n *node.Node, r ui.Reporter) (present, wanted []byte, err error) {
	rec, err := load(ctx, n)
	if err != nil || rec.file(containerdToml) == nil || rec.service(containerdName) == nil || rec.pending(containerdName) {
		return nil, nil, err
	}
	present, err = smallfile.Read(ctx, n, containerdToml)
	if errors.Is(err, host.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	bare, missing, traced, err := untracedFile(ctx, n, containerdToml, present)
	if err != nil || missing || traced || !bytes.Equal(bare, present) {
		return nil, nil, err
	}
	generator := containerdConfig{s.joining}
	wanted, err = generator.wanted(ctx, n, ui.Discard{}) // the next step tells of warnings
	switch {
	case err != nil && (ctx.Err() != nil || lost(err)):
		return nil, nil, err
	case err != nil: // a containerd that is broken may be why there is a new one
		r.Debug("%v", err)
		return nil, nil, nil
	case containerdconfig.Equal(present, wanted):
		return nil, nil, nil
	}
	return present, wanted, nil
}

// replacesContainerd reports whether a push replaces containerd itself.
func replacesContainerd(found deploy.NodeResult) bool {
	return slices.ContainsFunc(found.Components, func(c *deploy.ComponentResult) bool {
		return c.Name == containerdName && c.Action == deploy.ActionReplaced
	})
}
