package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/rollout/installation"
	"github.com/swdt-dev/swdt/internal/rollout/manage"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
	"github.com/swdt-dev/swdt/internal/ui"
)

// The controller, with the rights of its account, and the programs of five simulated machines, with
// tokens of pods on their nodes, against a real API server.
func TestFleetOnARealAPIServer(t *testing.T) {
	l := newLab(t)
	good, bad := fleettest.Kubelet("v1.37.2", ""), fleettest.Kubelet("v1.37.3", simulated.CrashAtStart)
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": good, "bad.exe": bad})
	all := fleettest.Machines(t, 5)
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	l.nodes(names...)
	cache := t.TempDir()
	for _, m := range all {
		l.program(m, cache)
	}
	stop := l.controller()
	two := intstr.FromInt32(2)
	spec := fleetv1.NodeRolloutSpec{Content: d.Content("good.exe"), MaxUnavailable: &two,
		Drain: &fleetv1.Drain{}, Health: fleetv1.NodeHealth{Settle: "100ms"}}
	everywhere := func(kubelet []byte, when string) {
		t.Helper()
		for _, m := range all {
			if !m.Runs(kubelet) {
				t.Errorf("%s has another kubelet %s", m.Name, when)
			}
		}
	}
	l.rollout(spec)
	watched := l.watch()
	l.settle(rollout.StateComplete)
	everywhere(good, "after a good build")
	if last := <-watched; last.Rollouts[0].State != rollout.StateComplete || last.Rollouts[0].Updated != 5 {
		t.Errorf("the last report of the watch is %+v", last)
	}

	stop() // the next controller begins with what the objects say
	l.controller()
	spec.Content = d.Content("bad.exe")
	l.rollout(spec)
	if s := l.settle(rollout.StateStopped); s.Failed != 1 || s.Updated != 0 {
		t.Errorf("after a bad build, the status is %+v", s)
	}
	everywhere(good, "after a bad build")

	spec.Content = d.Content("good.exe")
	l.rollout(spec)
	l.settle(rollout.StateComplete)
	spec.Operation = fleetv1.OperationRollBack
	l.rollout(spec)
	l.settle(rollout.StateRolledBack)
	for _, m := range all {
		if !m.Runs(m.First) {
			t.Errorf("%s has another kubelet than at first after the rollback", m.Name)
		}
	}
	l.unschedulable(names)
	t.Run("bad objects", l.testBadObjects)
	t.Run("every field", l.testEveryField)
	t.Run("conflict", l.testConflict)
}

// testConflict changes an image as another manager does. An installation with the image of before names the
// command that takes it back.
func (l *lab) testConflict(t *testing.T) {
	patch := `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"swdt-node","namespace":"swdt-fleet"},` +
		`"spec":{"template":{"spec":{"containers":[{"name":"node","image":"theirs"}]}}}}`
	force := true
	_, err := l.client().AppsV1().DaemonSets(manifests.Namespace).Patch(t.Context(), "swdt-node", types.ApplyPatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: "their-tool", Force: &force})
	if err != nil {
		t.Fatal(err)
	}
	o := installation.Options{Settings: manifests.Settings{NodeImage: "ours"}}
	_, err = installation.Run(t.Context(), l.admin, o, ui.Discard{})
	if _, ok := errors.AsType[*cni.ConflictError](err); !ok ||
		!strings.Contains(err.Error(), "`swdt fleet install --agent-image ours --force`") {
		t.Errorf("the error is %v", err)
	}
	o.Force = true
	if _, err := installation.Run(t.Context(), l.admin, o, ui.Discard{}); err != nil {
		t.Error(err)
	}
}

// watch watches the rollouts until they end, and sends the last report, or fails the test if no report shows
// a node on its way.
func (l *lab) watch() <-chan manage.Report {
	last := make(chan manage.Report, 1)
	l.background(func(ctx context.Context) {
		working := false
		report, err := manage.Watch(ctx, l.admin, manage.WatchOptions{
			See: func(r manage.Report) error {
				working = working || r.Rollouts[0].Working > 0
				return nil
			},
			Lost: func(err error) { l.t.Errorf("the watch is lost: %v", err) },
		})
		if err != nil || !working {
			l.t.Errorf("the watch: %v; nodes were seen on their way: %t", err, working)
		}
		last <- report
	})
	return last
}

// unschedulable checks that no cordon is left.
func (l *lab) unschedulable(names []string) {
	l.t.Helper()
	for _, name := range names {
		n, err := l.client().CoreV1().Nodes().Get(l.t.Context(), name, metav1.GetOptions{})
		if err != nil || n.Spec.Unschedulable {
			l.t.Errorf("node %s is still cordoned: %v", name, err)
		}
	}
}
