// Package push brings binaries onto a node. It compares the node file with the node, stages
// the binaries that differ while the services still run, and makes the node replace all of
// them in one transaction (package swap, on the node). It follows the transaction to its end,
// across lost connections.
//
//   - push.go: `swdt kubernetes` from beginning to end; decide.go: the differences
//   - stage.go: new binaries to the node; companion.go: files that go with them
//   - follow.go: the transaction
//   - cluster.go: the node as the API server sees it, before and after
//   - pending.go: transactions that an earlier, interrupted push left
//   - rollback.go, status.go: the commands `swdt rollback` and `swdt status`
//   - result.go, text.go: the results, and how they are printed
package push

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Options are the options of Push and Rollback; one value serves many nodes.
type Options struct {
	// Sources obtains binaries; share one between nodes. nil: the push makes one.
	Sources *source.Set
	// Depot makes pushes send differences instead of whole files; share one between
	// nodes. nil: whole files.
	Depot *transfer.Depot
	// Only are the components to push; empty: all in the node file.
	Only []string
	// Force restarts a component's service although nothing differs.
	Force bool
	// Strict makes an unexpected version an error, before anything is stopped.
	Strict bool
	// DryRun reports what the push would do, and changes nothing.
	DryRun bool
	// Companions is called once the new binaries are on the node. staged has the paths
	// of the new binaries that will replace others, by component name. It returns the
	// files to exchange in the same transaction. It cannot be combined with Cluster,
	// whose rollback restores binaries only. nil: none.
	Companions func(ctx context.Context, staged map[string]string) ([]Companion, error)
	// Commit is called once everything is on the node, before anything is stopped. If
	// it returns false, the push ends with a *SupersededError and the node unchanged.
	// nil: continue.
	Commit func() bool
	// Healthy is called once everything that was replaced is healthy, before the new
	// binaries are asked for their version. nil: not called.
	Healthy func()
	// Cluster is asked, after the swap, whether the node is Ready with a lease that its
	// new kubelet renewed. If it is not, the push puts the previous binaries back. nil:
	// the push does not ask an API server.
	Cluster Cluster
	// Drain makes the push evict the node's pods before it stops anything; pods may
	// return afterwards. nil: pods are not evicted.
	Drain *cluster.DrainOptions
	// Holder identifies who changes the node, for other users that want to change it.
	// Empty: user, machine and process.
	Holder string
	// Locked is set by a caller that holds the node's lock itself, and keeps it.
	Locked bool
}

// work is one push or rollback on one node.
type work struct {
	node      *node.Node
	reconnect func(context.Context) error
	doc       config.Document
	options   Options
	reporter  ui.Reporter

	components []*component
	companions []*agentv1.SwapComponent // staged
	result     *NodeResult
	locked     bool
	lost       bool // whether the session that held the lock has ended
	underway   bool // a transaction began, and its outcome is unknown
}

func newWork(n *node.Node, doc config.Document, options Options, r ui.Reporter) *work {
	if options.Sources == nil {
		options.Sources = source.NewSet(source.Options{})
	}
	if options.Holder == "" {
		options.Holder = plan.Holder("kubernetes")
	}
	result := newNodeResult(doc.Node.Metadata.Name)
	result.DryRun = options.DryRun
	return &work{
		node: n, reconnect: n.Reconnect, doc: doc, options: options, reporter: r,
		result: &result,
	}
}

// choose adds the components with these names; all if names is empty.
func (w *work) choose(names []string) error {
	provisioners := w.doc.Node.Spec.Kubernetes.Provisioners
	for _, name := range names {
		if !slices.ContainsFunc(provisioners, func(p v1alpha1.Provisioner) bool {
			return strings.EqualFold(p.Name, name)
		}) {
			return &UnknownComponentError{Name: name, Known: componentNames(provisioners)}
		}
	}
	for _, p := range provisioners {
		if len(names) > 0 && !named(names, p.Name) {
			continue
		}
		c := newComponent(p)
		w.components = append(w.components, c)
		w.result.Components = append(w.result.Components, c.result)
	}
	return nil
}

func named(names []string, name string) bool {
	return slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) })
}

func componentNames(provisioners []v1alpha1.Provisioner) []string {
	names := make([]string, len(provisioners))
	for i, p := range provisioners {
		names[i] = p.Name
	}
	return names
}

// finish completes the result with the work's outcome.
func (w *work) finish(err error) (NodeResult, error) {
	w.noteStanding(err)
	var back *RolledBackError
	switch {
	case errors.As(err, &back):
		w.result.Result = back.result()
		w.result.Error = err.Error()
	case err != nil:
		w.result.Result = Failed
		w.result.Error = err.Error()
		w.notDone()
	}
	return *w.result, err
}

// notDone sets the actions of the components that were not changed as planned, or whose
// change is uncertain.
func (w *work) notDone() {
	for _, c := range w.components {
		switch {
		case c.settled:
		case c.err != nil:
			c.result.Action = ActionFailed
			c.result.Message, c.result.cause = c.err.Error(), true
		case w.underway && c.change.changes():
			c.result.Action = ActionFailed
			c.addMessage("the node was still at work on it when swdt ended")
		default:
			c.result.Action = ActionUnchanged
		}
	}
}

// fail records that this component is the reason for the push's failure.
func (c *component) fail(err error) error {
	if err == nil {
		return nil
	}
	c.err = err
	return fmt.Errorf("%s: %w", c.spec.Name, err)
}
