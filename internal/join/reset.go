package join

import (
	"errors"
	"strings"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
)

// ResetOptions configure how a node leaves its cluster.
type ResetOptions struct {
	// Cluster is the cluster to leave. nil: swdt has no access to the cluster, and sends it no
	// request.
	Cluster *cluster.Cluster
	// Drain makes the reset evict the pods first; it needs Cluster. nil: the pods are not evicted.
	Drain *cluster.DrainOptions
	// DeleteNode removes the Node object; it needs Cluster.
	DeleteNode bool
	// Holder identifies who changes the node, for other users that want to change it.
	Holder string
	// DryRun and Before are for RunReset: DryRun only shows the changes; Before has
	// steps that run before the steps of the reset.
	DryRun bool
	Before []plan.Step
	// Kept receives each folder of the join that the reset does not remove, and the reason. nil: only the
	// messages of the steps have them.
	Kept func(folder, why string)
}

// keeps reports a folder that stays to Kept, and returns the message of the step.
func (o ResetOptions) keeps(why string, folders ...string) string {
	if len(folders) == 0 {
		return ""
	}
	for _, folder := range folders {
		if o.Kept != nil {
			o.Kept(folder, why)
		}
	}
	return "kept, since " + why + ": " + strings.Join(folders, ", ")
}

// Reset returns the steps that undo Steps, in reverse order. The steps undo only what the machine's
// record lists: on a machine without a record there is nothing to undo. Each step needs all
// previous steps (plan.Options.Ordered).
//
// Logs stay, and so do Windows features, swdt's own folder, and folders with content of
// other programs.
func Reset(n *node.Node, doc config.Document, o ResetOptions) ([]plan.Step, error) {
	j, err := newReset(n, doc, o)
	if err != nil {
		return nil, err
	}
	return j.undoSteps(), nil
}

func newReset(n *node.Node, doc config.Document, o ResetOptions) (*joining, error) {
	if o.Cluster == nil && (o.Drain != nil || o.DeleteNode) {
		return nil, errors.New("no cluster is given, so swdt cannot drain or delete the node: name a kubeconfig with " +
			"--kubeconfig, or use --no-drain without --delete-node")
	}
	j := newJoining(n, doc, Options{Cluster: o.Cluster, Holder: o.Holder})
	j.reset = o
	return j, nil
}

// undoSteps returns the steps that undo the join, beginning with the last step of the join.
func (j *joining) undoSteps() []plan.Step {
	return plan.Undo(append([]plan.Step{&recordFile{j}, &podNetworks{j}}, j.steps()...))
}
