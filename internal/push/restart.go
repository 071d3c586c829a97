package push

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// Restart restarts the services of the named components in one transaction, as after a push: dependents stop first, each
// service must be healthy before those that need it start, and an error has the last lines of the service's log. No file
// changes. Services that are stopped are started before the transaction, under the same lock. Restart returns the same
// errors as Push, and a *ProgramError for a component without a service.
func Restart(ctx context.Context, n *node.Node, doc config.Document, names []string, options Options,
	r ui.Reporter) (NodeResult, error) {
	if options.Holder == "" {
		options.Holder = plan.Holder("restart")
	}
	w := newWork(n, doc, options, r)
	err := w.restart(ctx, names)
	var back *RolledBackError
	if errors.As(err, &back) {
		back.Restart = true
		for _, c := range w.components { // the undo has started them
			if c.result.Action == ActionRolledBack {
				c.result.Action, c.result.Seconds = ActionRestarted, Seconds{}
			}
		}
	}
	return w.finish(err)
}

func (w *work) restart(ctx context.Context, names []string) error {
	return w.goBack(ctx, names, func(_ view, c seen) (*staged, error) { return c.decideRestart() })
}

// decideRestart plans the restart of the component's service. A service that is stopped has no part in the transaction.
func (c seen) decideRestart() (*staged, error) {
	if c.state.GetService() == nil {
		return nil, programErrorf("there is no service %s on the node", c.spec.RunBy())
	}
	again := &staged{difference: &difference{seen: c, change: changeRestart}}
	c.spec.Version, c.result.Version.Wanted = "", ""
	c.result.SHA256, c.result.Version.After = c.state.GetSha256(), c.state.GetVersion()
	if c.isStopped() {
		again.change = changeStart
		c.addMessage("service " + c.spec.RunBy() + " was stopped before")
	}
	return again, nil
}

// toStart returns the components whose service is to be started, each after those that it needs.
func (all differences) toStart() (ordered differences) {
	visited := map[*difference]bool{}
	var visit func(d *difference)
	visit = func(d *difference) {
		if d.change != changeStart || visited[d] {
			return
		}
		visited[d] = true
		needed := slices.Concat(d.dependsOn(), d.state.GetServiceConfig().GetDependencies())
		for _, other := range all {
			if named(needed, other.spec.RunBy()) {
				visit(other)
			}
		}
		ordered = append(ordered, d)
	}
	for _, d := range all {
		visit(d)
	}
	return ordered
}

// startFirst starts these services, before a transaction restarts those that need them.
func (w *work) startFirst(ctx context.Context, starts differences) error {
	for _, d := range starts {
		if err := w.start(ctx, d); err != nil {
			return d.fail(fmt.Errorf("%w; see why: %s", err, remedy.Command("logs", d.spec.RunBy())))
		}
		d.result.Action, d.settled = ActionStarted, true
	}
	return nil
}
