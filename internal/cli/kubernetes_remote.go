package cli

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/deploy"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/source"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/watch"
)

// remote is one node of a watch: a connection that stays open.
type remote struct {
	*watching
	document    config.Document
	reporter    ui.Reporter
	nodeOptions node.Options
	components  []watch.Component

	mutex    sync.Mutex
	node     *node.Node // nil: never connected
	replaced []string   // by the last push, for a rollback
	last     deploy.NodeResult
}

func (r *remote) name() string { return r.document.Node.Metadata.Name }

// connected is the node, nil where it was never reached.
func (r *remote) connected() *node.Node {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.node
}

func (r *remote) Connect(ctx context.Context) error {
	leave, err := r.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if n := r.connected(); n != nil {
		return n.Reconnect(ctx)
	}
	options := r.nodeOptions
	options.Reporter = r.reporter
	n, err := node.Connect(ctx, r.document, options)
	if err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.node = n
	return nil
}

// enter takes one of the places for nodes that are worked on at a time.
func (r *remote) enter(ctx context.Context) (leave func(), err error) {
	select {
	case r.free <- struct{}{}:
		return func() { <-r.free; ui.Done(r.reporter) }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (r *remote) Lost() <-chan struct{} {
	if n := r.connected(); n != nil {
		return n.Lost()
	}
	return nil
}

func (r *remote) Push(ctx context.Context, order watch.Order) (any, error) {
	options := r.options
	options.Only, options.Force = order.Names, order.Force
	options.Commit, options.Healthy = order.Commit, order.Healthy
	result, err := r.work(ctx, func(n *node.Node) (deploy.NodeResult, error) {
		return deploy.Push(ctx, n, r.document, options, r.reporter)
	})
	return pushResult{result, order}, err
}

// prepare makes ahead what a push of a component's new binary will send.
func (r *remote) prepare(ctx context.Context, name string, binary source.Binary) {
	r.mutex.Lock()
	n, last := r.node, r.last
	r.mutex.Unlock()
	if n == nil {
		return
	}
	if err := deploy.Prepare(ctx, n, last, name, binary, r.options.Depot); err != nil {
		r.reporter.Debug("%s: nothing done ahead: %v", name, err)
	}
}

// pushResult is what a push came to and what it was to be.
type pushResult struct {
	deploy.NodeResult
	order watch.Order
}

func (r *remote) RollBack(ctx context.Context) (any, error) {
	r.mutex.Lock()
	names := r.replaced
	r.mutex.Unlock()
	if len(names) == 0 {
		return pushResult{}, errors.New("nothing was pushed since swdt was started: `swdt rollback` takes earlier pushes back")
	}
	options := deploy.Options{Holder: r.options.Holder}
	result, err := r.work(ctx, func(n *node.Node) (deploy.NodeResult, error) {
		return deploy.Rollback(ctx, n, r.document, names, options, r.reporter)
	})
	return pushResult{NodeResult: result}, err
}

// work does something with the node. A connection that was lost unnoticed costs
// one try, not a failure.
func (r *remote) work(ctx context.Context, do func(*node.Node) (deploy.NodeResult, error)) (deploy.NodeResult, error) {
	leave, err := r.enter(ctx)
	if err != nil {
		return deploy.NodeResult{}, err
	}
	defer leave()
	n := r.connected()
	result, err := do(n)
	var lost *node.LostError
	if errors.As(err, &lost) && ctx.Err() == nil && n.Reconnect(ctx) == nil {
		result, err = do(n)
	}
	r.remember(result)
	return result, err
}

func (r *remote) remember(result deploy.NodeResult) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.last = result
	var replaced []string
	for _, c := range result.Components {
		if c.Action == deploy.ActionReplaced || c.Action == deploy.ActionCreated {
			replaced = append(replaced, c.Name)
		}
	}
	if len(replaced) > 0 {
		r.replaced = replaced
	}
}

// Retry: what only a person or another binary can mend is not tried again.
func (r *remote) Retry(err error) bool {
	var (
		back    *deploy.RolledBackError
		version *deploy.VersionError
		unknown *deploy.UnknownComponentError
		kind    *source.NotExecutableError
		machine *source.MachineError
		hash    *source.HashMismatchError
	)
	return !node.IsHopeless(err) && !errors.As(err, &back) && !errors.As(err, &version) && !errors.As(err, &unknown) &&
		!errors.As(err, &kind) && !errors.As(err, &machine) && !errors.As(err, &hash)
}

func (r *remote) Close(ctx context.Context) {
	if n := r.connected(); n != nil {
		closeNode(ctx, n)
	}
}

// logs shows the last lines of the services' logs: of a failed push those that
// the node reported, otherwise what stands in the log files now.
func (r *remote) logs(ctx context.Context) []string {
	r.mutex.Lock()
	n, last := r.node, r.last
	r.mutex.Unlock()
	var all []string
	for _, target := range r.document.Node.Spec.Kubernetes.Provisioners {
		i := slices.IndexFunc(last.Components, func(c *deploy.ComponentResult) bool { return c.Name == target.Name })
		switch {
		case i >= 0 && len(last.Components[i].LogLines) > 0:
			all = append(append(all, target.Name+", when it failed:"), last.Components[i].LogLines...)
		case n == nil:
			all = append(all, target.Name+": not connected")
		default:
			file, lines, err := deploy.LogLines(ctx, n, target.Name, 10)
			if err != nil {
				all = append(all, target.Name+": "+err.Error())
				continue
			}
			all = append(append(all, target.Name+", "+file+":"), lines...)
		}
	}
	return all
}
