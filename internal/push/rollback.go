package push

import (
	"context"
	"errors"
	"fmt"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// Rollback restores the previous binaries of the named components in one transaction. The node has
// kept these binaries. It now keeps the replaced binaries instead, so that a second rollback undoes
// the first. Rollback returns the same errors as Push.
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
	now, err := w.inspect(ctx)
	if err != nil {
		return err
	}
	defer w.unlock(ctx)
	if now, err = w.settlePending(ctx, now); err != nil {
		return err
	}
	kept := &staging{}
	var all differences
	for _, c := range now.components {
		back, err := c.decideRollback()
		if err != nil {
			return c.fail(err)
		}
		kept.components, all = append(kept.components, back), append(all, back.difference)
	}
	if !all.needed() || w.options.DryRun {
		w.planned(all)
		return nil
	}
	if err := w.lock(ctx); err != nil {
		return err
	}
	return w.swap(ctx, kept)
}

// decideRollback plans the return to the previous binary. The previous binary takes the place of a
// staged file: the node has it already, and keeps it if the transaction does not begin. The node
// file's arguments and version belong to the present binary, so decideRollback ignores them.
func (c seen) decideRollback() (*staged, error) {
	switch {
	case c.state.GetFolder():
		return nil, fmt.Errorf("%s is a folder on the node", c.spec.Destination)
	case c.state.GetPreviousSha256() == "":
		return nil, errors.New("the node keeps no previous binary: swdt has not replaced it yet, or it was rolled back " +
			"already")
	case c.state.GetError() != "":
		return nil, fmt.Errorf("look at %s on the node: %s", c.spec.Destination, c.state.GetError())
	}
	back := &staged{
		difference: &difference{seen: c}, path: layout.Previous(c.spec.Destination), sha256: c.state.GetPreviousSha256(),
	}
	c.result.SHA256 = back.sha256
	c.spec.Version, c.result.Version.Wanted = "", ""
	c.result.Version.After = c.state.GetPreviousVersion()
	switch {
	case !c.state.GetExists():
		back.change = changeCreate
	case c.state.GetSha256() == back.sha256:
		back.change = changeNone
		c.addMessage("the previous binary is the same as the present one")
	default:
		back.change = changeBinary
	}
	return back, nil
}
