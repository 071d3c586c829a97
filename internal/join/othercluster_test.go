package join_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// The kubeconfig is for another cluster, which has a node of the same name: that node is
// another machine, which the reset must not touch.
func TestResetWithAnotherClustersKubeconfigTouchesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		options := join.ResetOptions{Cluster: ours.cluster, Drain: &cluster.DrainOptions{}, DeleteNode: true}
		if _, err := ours.resetWith(options); err != nil {
			t.Errorf("reset with the right kubeconfig: %v", err)
		}
	})
}

// Preflight reports the problem before anything is changed: it knows by the CA of which
// cluster the machine is a node.
func TestPreflightWithAnotherClustersKubeconfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, other := newLab(t), newLab(t)
		if own, err := join.Own(t.Context(), ours.Node.Node); err != nil || len(own.Authorities) > 0 {
			t.Fatalf("a bare machine: %+v, %v", own, err)
		}
		ours.mustJoin()
		if p, found := ours.problem(ours.cluster, "membership"); found {
			t.Errorf("its own cluster: %+v", p)
		}
		if p, found := ours.problem(other.cluster, "membership"); !found || p.Severity != finding.Error {
			t.Errorf("another cluster: %+v", p)
		}
		if _, err := ours.resetWith(join.ResetOptions{Cluster: ours.cluster}); err != nil {
			t.Fatal(err)
		}
		if p, found := ours.problem(other.cluster, "membership"); found {
			t.Errorf("another cluster, once it has left: %+v", p)
		}
	})
}

// A machine that has left may join again at once, while the cluster still considers its
// Node Ready. If that Node is another machine, it may not.
func TestPreflightOfAMachineThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control := newControl(t, apiserver.Options{NodeGrace: time.Hour})
		l, namesake := newNodeOf(t, control, "win1"), newNodeOf(t, control, "win1")
		l.mustJoin()
		if _, err := l.resetWith(join.ResetOptions{Cluster: l.cluster}); err != nil {
			t.Fatal(err)
		}
		l.isReady() // the cluster has not noticed that it left
		if p, found := namesake.problem(l.cluster, "node-name"); !found || p.Severity != finding.Error {
			t.Errorf("another machine: %+v", p)
		}
		if p, found := l.problem(l.cluster, "node-name"); !found || p.Severity != finding.Info {
			t.Errorf("the same machine: %+v", p)
		}
	})
}

// The node file ignores the check of the name, and the Node of that name is another
// machine: a join that drains leaves it alone.
func TestAJoinDoesNotDrainANamesake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control := newControl(t, apiserver.Options{NodeGrace: time.Hour})
		l, namesake := newNodeOf(t, control, "win1"), newNodeOf(t, control, "win1")
		l.mustJoin()
		namesake.spec().Join.IgnorePreflightErrors = []string{"node-name"}
		before := namesake.state()
		options := namesake.options()
		options.Drain = &cluster.DrainOptions{}
		result, err := join.Run(t.Context(), namesake.Node.Node, namesake.doc, options, namesake.story)
		var other *cluster.OtherMachineError
		if !errors.As(err, &other) {
			t.Fatalf("error %v, want an OtherMachineError\n%s", err, table(result.Steps))
		}
		for _, remedy := range []string{"spec.kubernetes.join.nodeName", "`kubectl delete node win1`"} {
			if !strings.Contains(err.Error(), remedy) {
				t.Errorf("error %q, want the remedy %s", err, remedy)
			}
		}
		if strings.Contains(err.Error(), "kubeconfig") {
			t.Errorf("error %q has a remedy of another command", err)
		}
		if n := l.isReady(); n.Cordoned || strings.Contains(namesake.story.String(), "cordon node") {
			t.Errorf("the other machine's node was cordoned:\n%s", namesake.story)
		}
		after := namesake.state()
		delete(after.Files, `C:\ProgramData\swdt\lock`) // the run holds the node's lock
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the machine was changed (-before +after):\n%s", diff)
		}
	})
}

func TestMachineJoinsAgainAfterAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.mustJoin()
		if _, err := l.resetWith(join.ResetOptions{Cluster: l.cluster}); err != nil {
			t.Fatal(err)
		}
		l.mustJoin()
		l.isReady()
	})
}

// problem returns the problem that a preflight check finds with the machine and a cluster.
func (l *lab) problem(c *cluster.Cluster, check string) (finding.Problem, bool) {
	l.t.Helper()
	own, err := join.Own(l.t.Context(), l.Node.Node)
	if err != nil {
		l.t.Fatal(err)
	}
	report, err := preflight.Run(l.t.Context(), preflight.Input{
		Node: l.Node.Node, Cluster: c, Spec: *l.spec(), Own: own, MayReboot: true,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	i := slices.IndexFunc(report.Problems, func(p finding.Problem) bool { return p.Check == check })
	if i < 0 {
		return finding.Problem{}, false
	}
	return report.Problems[i], true
}

// A later reset with --delete-node deletes the Node that a reset without it has left.
func TestResetDeletesTheNodeThatAnEarlierResetLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, namesake := newLab(t), newLab(t)
		l.mustJoin()
		if _, err := l.resetWith(join.ResetOptions{Cluster: l.cluster}); err != nil {
			t.Fatal(err)
		}
		namesake.mustJoin()
		results, err := l.resetWith(join.ResetOptions{Cluster: namesake.cluster, DeleteNode: true})
		nothing(t, results, err) // the Node in that cluster is another machine
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
	})
}
