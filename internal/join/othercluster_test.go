package join_test

import (
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join"
)

// A kubeconfig of another cluster, which has a node of the same name: that one is
// another machine, and must be left alone.
func TestResetWithAnotherClustersKubeconfigTouchesNothing(t *testing.T) {
	ours, other := newLab(t), newLab(t)
	ours.mustJoin()
	other.mustJoin()
	before := ours.state()
	for name, options := range map[string]join.ResetOptions{
		"drain":       {Cluster: other.cluster, Drain: &cluster.DrainOptions{}},
		"delete-node": {Cluster: other.cluster, DeleteNode: true},
	} {
		results, err := ours.resetWith(options)
		if err == nil || !strings.Contains(err.Error(), "another cluster") {
			t.Errorf("%s: %v\n%s", name, err, table(results))
		}
	}
	if n := other.isReady(); n.Cordoned {
		t.Error("the other cluster's node was cordoned")
	}
	if after := ours.state(); len(after.Services) != len(before.Services) || len(after.Files) != len(before.Files) {
		t.Errorf("the machine was changed: %v", after.Services)
	}
	if _, err := ours.resetWith(join.ResetOptions{Cluster: ours.cluster, Drain: &cluster.DrainOptions{}, DeleteNode: true}); err != nil {
		t.Errorf("reset with the right kubeconfig: %v", err)
	}
}

// Who thinks of --delete-node only after the reset gets what he wants.
func TestResetDeletesTheNodeThatAnEarlierResetLeft(t *testing.T) {
	l, namesake := newLab(t), newLab(t)
	l.mustJoin()
	if _, err := l.resetWith(join.ResetOptions{Cluster: l.cluster}); err != nil {
		t.Fatal(err)
	}
	namesake.mustJoin()
	results, err := l.resetWith(join.ResetOptions{Cluster: namesake.cluster, DeleteNode: true})
	nothing(t, results, err) // that one is another machine
	namesake.isReady()
	results, err = l.resetWith(join.ResetOptions{Cluster: l.cluster, DeleteNode: true})
	if err != nil || len(changed(results)) != 1 {
		t.Fatalf("%v\n%s", err, table(results))
	}
	if n, err := l.cluster.Node(t.Context(), "win1"); err != nil || n.Exists {
		t.Errorf("the node is still there: %v %v", n.State(), err)
	}
	results, err = l.resetWith(join.ResetOptions{Cluster: l.cluster, DeleteNode: true})
	nothing(t, results, err)
}
