package live

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/push/watch"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Remote is one node of a watch. Its connection stays open between pushes.
type Remote struct {
	watch       *Watch
	document    config.Document
	reporter    ui.Reporter
	nodeOptions node.Options
	components  []watch.Component

	mutex    sync.Mutex
	node     *node.Node // nil: never connected
	replaced []string   // components that the last change replaced or created; a rollback restores their old binaries
	last     push.NodeResult
}

// Name returns the node's name.
func (r *Remote) Name() string { return r.document.Node.Metadata.Name }

// connected returns the node, or nil if it was never reached.
func (r *Remote) connected() *node.Node {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.node
}

func (r *Remote) Connect(ctx context.Context) error {
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

// enter waits until swdt works on fewer than Options.Parallel nodes, and takes a place. The
// returned function frees that place.
func (r *Remote) enter(ctx context.Context) (leave func(), err error) {
	select {
	case r.watch.free <- struct{}{}:
		return func() { <-r.watch.free; ui.Done(r.reporter) }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (r *Remote) Lost() <-chan struct{} {
	if n := r.connected(); n != nil {
		return n.Lost()
	}
	return nil
}

func (r *Remote) Push(ctx context.Context, order watch.Order) (any, error) {
	options := r.watch.options.Push
	options.Only, options.Force = order.Names, order.Force
	options.Healthy = order.Healthy
	options.Commit = func() bool {
		r.interruptRun(ctx)
		return order.Commit()
	}
	result, err := r.work(ctx, func(n *node.Node) (push.NodeResult, error) {
		return push.Push(ctx, n, r.document, options, r.reporter)
	})
	return Result{result, order}, err
}

// interruptRun ends what runs after each push, since the node is about to change.
func (r *Remote) interruptRun(ctx context.Context) {
	if after := r.watch.options.After; after != nil {
		after.Interrupt(ctx)
	}
}

// prepare makes, ahead of time, the patch that a push of a component's new binary will
// send.
func (r *Remote) prepare(ctx context.Context, name string, binary source.Binary) {
	r.mutex.Lock()
	n, last := r.node, r.last
	r.mutex.Unlock()
	if n == nil {
		return
	}
	if err := push.Prepare(ctx, n, last, name, binary, r.watch.options.Push.Depot); err != nil {
		r.reporter.Debug("%s: nothing done ahead: %v", name, err)
	}
}

// Result is the value of watch.Event.Result after a push or a rollback. order is the order of
// the push; it is empty after a rollback.
type Result struct {
	push.NodeResult
	order watch.Order
}

func (r *Remote) RollBack(ctx context.Context) (any, error) {
	r.mutex.Lock()
	names := r.replaced
	r.mutex.Unlock()
	if len(names) == 0 {
		return Result{}, errors.New("nothing was pushed since swdt was started: `swdt rollback` takes earlier " +
			"pushes back")
	}
	options := push.Options{Holder: r.watch.options.Push.Holder}
	r.interruptRun(ctx)
	result, err := r.work(ctx, func(n *node.Node) (push.NodeResult, error) {
		return push.Rollback(ctx, n, r.document, names, options, r.reporter)
	})
	return Result{NodeResult: result}, err
}

// work calls the function do with the node. If the connection was lost unnoticed, work reconnects
// and calls that function once more.
func (r *Remote) work(ctx context.Context, do func(*node.Node) (push.NodeResult, error)) (push.NodeResult, error) {
	leave, err := r.enter(ctx)
	if err != nil {
		return push.NodeResult{}, err
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

func (r *Remote) remember(result push.NodeResult) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.last = result
	var replaced []string
	for _, c := range result.Components {
		if c.Action == push.ActionReplaced || c.Action == push.ActionCreated {
			replaced = append(replaced, c.Name)
		}
	}
	if len(replaced) > 0 {
		r.replaced = replaced
	}
}

// Retry reports whether a later try may succeed. Failures that only a user or another
// binary can fix are not retried.
func (r *Remote) Retry(err error) bool {
	var back *push.RolledBackError
	return !node.IsHopeless(err) && !errors.As(err, &back) && !push.IsMistake(err) && !source.Refused(err)
}

func (r *Remote) Close(ctx context.Context) {
	if n := r.connected(); n != nil {
		n.Leave(ctx)
	}
}

// Logs returns the last lines of the services' logs: for a service that failed in the last push,
// the lines that the node reported then; for any other service, the lines that are now at the end
// of its log file.
func (r *Remote) Logs(ctx context.Context) []string {
	r.mutex.Lock()
	n, last := r.node, r.last
	r.mutex.Unlock()
	var all []string
	for _, target := range r.document.Node.Spec.Kubernetes.Provisioners {
		i := slices.IndexFunc(last.Components, func(c *push.ComponentResult) bool { return c.Name == target.Name })
		switch {
		case i >= 0 && len(last.Components[i].LogLines) > 0:
			all = append(append(all, target.Name+", when it failed:"), last.Components[i].LogLines...)
		case n == nil:
			all = append(all, target.Name+": not connected")
		default:
			file, lines, err := push.LogLines(ctx, n, target.Name, 10)
			if err != nil {
				all = append(all, target.Name+": "+err.Error())
				continue
			}
			all = append(append(all, target.Name+", "+file+":"), lines...)
		}
	}
	return all
}
