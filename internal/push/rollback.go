package push

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Rollback restores the previous binaries of the named components in one transaction. The
// node has kept these binaries; it now keeps the present ones, so that a second rollback
// undoes the first. The errors are the same as those of Push.
func Rollback(ctx context.Context, n *node.Node, doc config.Document, names []string, options Options,
	r ui.Reporter) (NodeResult, error) {
	if options.Holder == "" {
		options.Holder = plan.Holder("rollback")
	}
	w := newWork(n, doc, options, r)
	return w.finish(w.rollback(ctx, names))
}

func (w *work) rollback(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return errors.New("name the components to roll back")
	}
	if err := w.choose(names); err != nil {
		return err
	}
	reply, err := w.inspect(ctx)
	if err != nil {
		return err
	}
	defer w.unlock(ctx)
	if _, err = w.settlePending(ctx, reply); err != nil {
		return err
	}
	for _, c := range w.components {
		if err := c.fail(c.decideRollback()); err != nil {
			return err
		}
	}
	if !w.needed() || w.options.DryRun {
		w.planned()
		return nil
	}
	if err := w.lock(ctx); err != nil {
		return err
	}
	return w.swap(ctx)
}

// decideRollback plans the return to the previous binary. The node file's arguments
// and version belong to the present binary and are ignored.
func (c *component) decideRollback() error {
	switch {
	case c.state.GetFolder():
		return fmt.Errorf("%s is a folder on the node", c.spec.Destination)
	case c.state.GetPreviousPath() == "" || c.state.GetPreviousSha256() == "":
		return errors.New("the node keeps no previous binary: swdt has not replaced it yet, or it was rolled back " +
			"already")
	case c.state.GetError() != "":
		return fmt.Errorf("look at %s on the node: %s", c.spec.Destination, c.state.GetError())
	}
	c.staged, c.sha256 = c.state.GetPreviousPath(), c.state.GetPreviousSha256()
	c.result.SHA256 = c.sha256
	c.spec.Version, c.result.Version.Wanted = "", ""
	c.result.Version.After = c.state.GetPreviousVersion()
	switch {
	case !c.state.GetExists():
		c.change = changeCreate
	case c.state.GetSha256() == c.sha256:
		c.change = changeNone
		c.addMessage("the previous binary is the same as the present one")
	default:
		c.change = changeBinary
	}
	return nil
}
