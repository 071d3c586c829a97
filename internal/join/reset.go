package join

import (
	"errors"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/plan"
)

// ResetOptions say how a node leaves its cluster.
type ResetOptions struct {
	// Cluster is the one to leave. nil: none at hand, and nothing is asked of it.
	Cluster *cluster.Cluster
	// Drain has the pods leave first; it needs Cluster. nil: they are not asked.
	Drain *cluster.DrainOptions
	// DeleteNode removes the Node object; it needs Cluster.
	DeleteNode bool
	// Holder names who changes the node, for others that want to.
	Holder string
}

// Reset takes back what Steps did, the last first, by the machine's own record:
// what is not in it stays. Each step needs all before it (plan.Options.Ordered).
// A machine without a record has nothing to take back.
//
// Logs stay, and so do Windows features, swdt's own folder, and folders that
// others have put something into.
func Reset(doc config.Document, o ResetOptions) ([]plan.Step, error) {
	if o.Cluster == nil && (o.Drain != nil || o.DeleteNode) {
		return nil, errors.New("there is no cluster at hand to drain or delete the node in: name a kubeconfig with --kubeconfig, or use --no-drain and no --delete-node")
	}
	j := newJoining(doc, Options{Cluster: o.Cluster, Holder: o.Holder})
	j.reset = o
	return plan.Undo(append([]plan.Step{&recordFile{j}}, j.steps()...)), nil
}
