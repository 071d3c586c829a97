package control_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
	"github.com/swdt-dev/swdt/internal/wait"
)

// testForgedOrders writes orders with the token of the controller for a node whose program runs: the program refuses all
// that are not those of a NodeRollout that chooses the node.
func (l *lab) testForgedOrders(t *testing.T, controller *rest.Config) {
	good, theirs := fleettest.Kubelet("v1.37.2", ""), fleettest.Kubelet("v6.6.6", "")
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": good, "theirs.exe": theirs})
	m := fleettest.NewMachine(t, "w5")
	own := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name,
		Labels: map[string]string{"kubernetes.io/os": "windows", "pool": "a"}}}
	if _, err := l.client().CoreV1().Nodes().Create(t.Context(), own, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	in := func(pool string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchLabels: map[string]string{"pool": pool}}
	}
	l.rolloutNamed("elsewhere", fleetv1.NodeRolloutSpec{Content: d.Content("theirs.exe"), Selector: in("b")})
	l.rolloutNamed("r", fleetv1.NodeRolloutSpec{Content: d.Content("good.exe"), Selector: in("a")})
	l.program(m, t.TempDir())
	access, err := cluster.FromConfig(controller)
	if err != nil {
		t.Fatal(err)
	}
	h := &forger{lab: l, as: access, machine: m}
	h.spoilRollout(t)
	order := func(content fleetv1.Content) fleetv1.NodeStateSpec {
		return fleetv1.NodeStateSpec{Rollout: "r", Action: fleetv1.ActionApply, Released: true, Content: content,
			Hash: rollout.HashOf(content), Since: metav1.NewTime(time.Now())}
	}
	further := d.Content("good.exe")
	further.Setup = &fleetv1.Setup{Environment: map[string]string{"COMSPEC": `C:\theirs.exe`}}
	elsewhere, hash, back := order(d.Content("theirs.exe")), order(d.Content("theirs.exe")), order(d.Content("theirs.exe"))
	elsewhere.Rollout, hash.Hash, back.Action = "elsewhere", rollout.HashOf(d.Content("good.exe")), fleetv1.ActionRollBack
	for _, forged := range []struct {
		spec   fleetv1.NodeStateSpec
		reason string
	}{
		{order(d.Content("theirs.exe")), "differs in provisioners[0].sha256, provisioners[0].sourceURL"},
		{order(further), "differs in setup"},
		{hash, "hash"},
		{elsewhere, "does not choose this node"},
		{back, "no record"},
	} {
		h.write(t, forged.spec)
		h.await(t, fleetv1.PhaseRefused, forged.reason)
		if !m.Runs(m.First) {
			t.Fatal("the machine does not run its first kubelet")
		}
	}
	h.write(t, order(d.Content("good.exe")))
	h.await(t, fleetv1.PhaseDone, "")
	if !m.Runs(good) {
		t.Error("an order of the rollout: the machine does not run its content")
	}
}

// forger has the token of the controller.
type forger struct {
	*lab
	as      *cluster.Cluster
	machine *fleettest.Machine
}

// write gives an order.
func (h *forger) write(t *testing.T, spec fleetv1.NodeStateSpec) {
	t.Helper()
	resource := h.as.Dynamic().Resource(fleetv1.StateResource())
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": spec}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resource.Get(t.Context(), h.machine.Name, metav1.GetOptions{}); err != nil {
		if err := h.create(t.Context(), h.as, nodeState(h.machine.Name, "")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := resource.Patch(t.Context(), h.machine.Name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// await waits for the node's report.
func (h *forger) await(t *testing.T, phase fleetv1.Phase, message string) {
	t.Helper()
	var s fleetv1.NodeState
	err := wait.Condition{Name: "the report " + string(phase), Interval: 20 * time.Millisecond, Limit: time.Minute,
		Look: func(ctx context.Context) error {
			u, err := h.admin.Dynamic().Resource(fleetv1.StateResource()).Get(ctx, h.machine.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			s = fleetv1.NodeState{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s); err != nil {
				return wait.Stop(err)
			}
			if s.Status.Phase != phase || s.Status.Hash != s.Spec.Hash || !strings.Contains(s.Status.Message, message) {
				return errNotYet
			}
			return nil
		}}.Wait(t.Context())
	if err != nil {
		t.Fatalf("%v with %q: %+v", err, message, s.Status)
	}
}

// spoilRollout tries to change the spec of a rollout by way of its status, which the controller may write.
func (h *forger) spoilRollout(t *testing.T) {
	t.Helper()
	look := func() map[string]any {
		u, err := h.admin.Dynamic().Resource(fleetv1.RolloutResource()).Get(t.Context(), "r", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return map[string]any{"spec": u.Object["spec"], "labels": u.GetLabels(), "generation": u.GetGeneration()}
	}
	before := look()
	_, err := h.as.Dynamic().Resource(fleetv1.RolloutResource()).Patch(t.Context(), "r", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"a":"b"}},"spec":{"paused":true,"selector":{"matchLabels":null}},"status":{"message":"tried"}}`),
		metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, look()); diff != "" {
		t.Errorf("a write of the status changes more:\n%s", diff)
	}
}
