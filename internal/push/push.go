package push

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Push brings the node's components to the state in the node file. It replaces all components that
// differ in one transaction. In the usual case that no component differs, it makes one call and
// writes nothing.
//
// A *RolledBackError means that the node was changed and changed back. An *InterruptedError means
// that the node is still at work. Any other error means that the node is unchanged, unless its text
// reports otherwise: after the swap, the check of the Node object or the rollback can still fail.
// The result is filled in as far as it is known, even if Push returns an error.
func Push(ctx context.Context, n *node.Node, doc config.Document, options Options, r ui.Reporter) (NodeResult, error) {
	w := newWork(n, doc, options, r)
	return w.finish(w.push(ctx))
}

// push calls the stages in order. Until it stages new binaries, it changes nothing on the node,
// except that it finishes the transaction of an earlier push.
func (w *work) push(ctx context.Context) error {
	if err := w.choose(w.options.Only); err != nil {
		return err
	}
	w.look()
	binaries, now, err := w.obtainAndInspect(ctx)
	if err != nil {
		return err
	}
	defer w.unlock(ctx)
	if now, err = w.settlePending(ctx, now); err != nil {
		return err
	}
	decided, err := w.decideAll(now, binaries, w.services(now.components))
	if err != nil {
		return err
	}
	if err := w.checkDependencies(ctx, decided); err != nil {
		return err
	}
	if w.options.Record != nil && !w.options.DryRun {
		if err := w.options.Record(ctx, decided.former()); err != nil {
			return err
		}
	}
	if !decided.needed() || w.options.DryRun {
		err := w.leaveAlone(ctx, decided)
		if err == nil && w.options.Start && !w.options.DryRun {
			err = w.startStopped(ctx, decided)
		}
		return err
	}
	if err := w.lock(ctx); err != nil {
		return err
	}
	w.parts.begin(partStage)
	files, err := w.stage(ctx, decided)
	if err == nil {
		err = w.exchange(ctx, decided, files)
	}
	w.unstage(ctx, files, err)
	if err == nil && w.options.Start {
		err = w.startStopped(ctx, decided)
	}
	return err
}

// obtainAndInspect reads the sources on your machine while the node inspects itself. It
// returns a binary for each component.
func (w *work) obtainAndInspect(ctx context.Context) (binaries []source.Binary, now view, err error) {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		binaries, err = w.obtain(ctx)
		return err
	})
	both.Go(func() (err error) {
		now, err = w.inspect(ctx)
		return err
	})
	err = both.Wait()
	return binaries, now, err
}

// leaveAlone completes the result of a dry run, or of a push that needs no change on the node.
// After such a push, it also keeps copies of the binaries and removes leftover files.
func (w *work) leaveAlone(ctx context.Context, all differences) error {
	w.planned(all)
	if w.options.DryRun {
		return nil
	}
	w.keep(ctx, all)()
	return w.tidy(ctx, all)
}

// planned sets the result to the decision.
func (w *work) planned(all differences) {
	for _, d := range all {
		d.result.Action = d.change.action()
		if d.change.changes() || d.change == changeStart {
			w.result.Result = Changed
		}
	}
}

// exchange makes the node replace its binaries by the staged ones, unless options.Commit reports
// that the push is outdated.
func (w *work) exchange(ctx context.Context, all differences, files *staging) error {
	if w.options.Commit != nil && !w.options.Commit() {
		return &SupersededError{}
	}
	defer w.keep(ctx, all)()
	return w.swapInCluster(ctx, files)
}
