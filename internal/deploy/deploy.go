// Package deploy brings binaries onto a node: it compares what the node file
// wants with what stands there, stages what differs while the services still
// run, and has the node replace it all in one transaction (package swap, on the
// node), which it follows to its end through a lost connection.
//
//   - push.go: the story of `swdt kubernetes`; decide.go: what differs
//   - stage.go: new binaries to the node; follow.go: the transaction
//   - cluster.go: the node as the API server sees it, before and after
//   - pending.go: what an earlier, interrupted push left
//   - rollback.go, status.go: the commands of those names
//   - result.go, text.go: what is printed
package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/source"
	"github.com/swdt-dev/swdt/internal/transfer"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Options of Push and Rollback; one value serves many nodes.
type Options struct {
	// Sources obtains binaries; share one between nodes. nil: one of its own.
	Sources *source.Set
	// Depot lets differences be sent instead of whole files; share one between
	// nodes. nil: whole files.
	Depot *transfer.Depot
	// Only are the components to push; empty: all of the node file.
	Only []string
	// Force restarts a component's service although nothing differs.
	Force bool
	// Strict makes an unexpected version an error, before anything is stopped.
	Strict bool
	// DryRun says what would be done and changes nothing.
	DryRun bool
	// Commit is called once all is on the node, before anything is stopped; false
	// ends the push with a *SupersededError and the node as it was. nil: go on.
	Commit func() bool
	// Healthy is called once all that was replaced is healthy, before the new
	// binaries are asked for their version. nil: nobody waits for it.
	Healthy func()
	// Cluster is asked, after the swap, whether the node is Ready with a lease
	// that its new kubelet renewed; where it is not, the previous binaries come
	// back. nil: nobody is asked.
	Cluster Cluster
	// Drain has the node's pods leave before anything is stopped, and lets them
	// back after. nil: they stay.
	Drain *cluster.DrainOptions
	// Holder names who changes the node, for others that want to. Empty: user,
	// machine and process.
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
	result     *NodeResult
	locked     bool
	lost       bool // the session that held the lock, if it did
	underway   bool // a transaction began whose outcome is not known
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

// choose makes the components that are named, all if none is.
func (w *work) choose(names []string) error {
	provisioners := w.doc.Node.Spec.Kubernetes.Provisioners
	for _, name := range names {
		if !slices.ContainsFunc(provisioners, func(p v1alpha1.Provisioner) bool { return strings.EqualFold(p.Name, name) }) {
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

// finish completes the result with how the work ended.
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

// notDone marks components that were to be changed and were not, or of which
// that is not known.
func (w *work) notDone() {
	for _, c := range w.components {
		switch {
		case c.settled:
		case c.err != nil:
			c.result.Action = ActionFailed
			c.result.Message, c.result.cause = c.err.Error(), true
		case w.underway && c.change.changes():
			c.result.Action = ActionFailed
			c.say("the node was still at work on it when swdt ended")
		default:
			c.result.Action = ActionUnchanged
		}
	}
}

// fail records that one component is the reason why the work fails.
func (c *component) fail(err error) error {
	if err == nil {
		return nil
	}
	c.err = err
	return fmt.Errorf("%s: %w", c.spec.Name, err)
}
