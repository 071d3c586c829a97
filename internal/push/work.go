package push

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/transfer"
	"github.com/swdt-dev/swdt/internal/obtain/source"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// work has the data that all stages of one push, rollback or status on one node share.
type work struct {
	node      *node.Node
	reconnect func(context.Context) error
	doc       config.Document
	options   Options
	reporter  ui.Reporter

	components []*component
	result     *NodeResult
	parts      parts
	locked     bool
	lost       bool // the session that held the lock has ended
	// companions are the files that a rollback puts back along with the binaries.
	companions []*agentv1.SwapComponent
}

// component is the first stage of a binary: the node file's wish, and the result, to which
// each later stage adds.
type component struct {
	spec   v1alpha1.Provisioner
	joined bool // added by addJoined: the component has no provisioner, and so no source

	result    *ComponentResult
	err       error // the reason why the push failed; nil if the reason is not this component
	settled   bool  // the result's action is final
	uncertain bool  // a transaction that changes this component began, and its outcome is unknown
}

func newWork(n *node.Node, doc config.Document, options Options, r ui.Reporter) *work {
	if options.Sources == nil {
		options.Sources = source.NewSet(source.Options{})
	}
	if options.Holder == "" {
		options.Holder = plan.Holder("push")
	}
	result := newNodeResult(doc.Node.Metadata.Name)
	result.DryRun = options.DryRun
	return &work{
		node: n, reconnect: n.Reconnect, doc: doc, options: options, reporter: r,
		result: &result,
	}
}

// look begins the first part of the work. A connection is a part of the first work on it alone.
func (w *work) look() {
	if connect, agent := w.node.Took(); agent > 0 {
		w.parts.add(partConnect, connect)
		w.parts.add(partAgent, agent)
	}
	w.parts.begin(partInspect)
}

func newComponent(spec v1alpha1.Provisioner) *component {
	return &component{spec: spec, result: &ComponentResult{
		Name: spec.Name, Destination: spec.Destination, Version: Version{Wanted: spec.Version},
		Transfer: &transfer.Result{Method: transfer.MethodNone}, LogLines: []string{},
	}}
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
	w.parts.end()
	w.result.Parts = w.parts.all
	w.reporter.Debug("parts: %s", &w.parts)
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

// notDone sets the action of each component that was not changed as planned, or of which swdt does
// not know whether it was changed.
func (w *work) notDone() {
	for _, c := range w.components {
		switch {
		case c.settled:
		case c.err != nil:
			c.result.Action = ActionFailed
			c.result.Message, c.result.cause = c.err.Error(), true
		case c.uncertain:
			c.result.Action = ActionFailed
			c.addMessage("the node was still at work on it when swdt ended")
		default:
			c.result.Action = ActionUnchanged
		}
	}
}

// noteStanding records which binaries the work left on the node, so that the next push can
// begin to work before the node has answered.
func (w *work) noteStanding(err error) {
	if w.options.Depot == nil || w.options.DryRun {
		return
	}
	for _, c := range w.components {
		stands := c.result.SHA256
		if err != nil {
			stands = c.result.PreviousSHA256
		}
		if stands != "" {
			w.options.Depot.RecordInstalled(c.spec.Name, stands)
		}
	}
}

// fail records that this component is the reason for the push's failure, and returns err with the
// component's name. It does nothing if err is nil.
func (c *component) fail(err error) error {
	if err == nil {
		return nil
	}
	c.err = err
	return fmt.Errorf("%s: %w", c.spec.Name, err)
}

// addMessage adds a message to the result; "" adds none.
func (c *component) addMessage(message string) {
	if c.result.Message != "" && message != "" {
		message = "; " + message
	}
	c.result.Message += message
}
