package control_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// beforeOrders calls f right before each write of the controller to a node's order.
func (m *memory) beforeOrders(f func(node string)) {
	busy := false // f writes, too
	m.server.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		if r.Resource == "nodestates" && r.Verb == "patch" && r.Subresource == "" && !busy {
			busy = true
			f(r.Name)
			busy = false
		}
		return apiserver.Verdict{}
	})
}

// setSpec changes fields of an object's spec.
func (m *memory) setSpec(resource schema.GroupVersionResource, name string, fields map[string]any) {
	m.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": fields})
	if err != nil {
		m.t.Fatal(err)
	}
	_, err = m.admin.Dynamic().Resource(resource).Patch(m.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
}

// fetched returns a controller that has claimed w0 and w1 of m's nodes, which have the binaries.
func (m *memory) fetched() (decide func()) {
	m.t.Helper()
	now := time.Now()
	r := m.reconciler(func() time.Time { return now })
	m.rollout("r", func(*fleetv1.NodeRolloutSpec) {})
	m.reconcile("r", r)
	for _, name := range []string{"w0", "w1"} {
		m.report(name, fleetv1.PhaseFetched)
	}
	return func() { m.reconcile("r", r) }
}

// A node that reports all the time keeps neither its own next order nor those of others from being written.
func TestANodeThatReportsAllTheTimeGetsItsOrders(t *testing.T) {
	m := newStill(t, "w0", "w1")
	decide := m.fetched()
	reports := 0
	m.beforeOrders(func(node string) {
		if node == "w0" && reports < 3 {
			reports++
			m.report("w0", fleetv1.PhaseFetched)
		}
	})
	decide()
	for _, name := range []string{"w0", "w1"} {
		if !m.state(name).Spec.Released {
			t.Errorf("after one decision, and %d reports of w0 in it, %s is not released", reports, name)
		}
	}
	if s := m.status("r"); reports != 3 || s.Working != 2 {
		t.Errorf("%d reports; the status is %+v", reports, s)
	}
}

// Another writer of one node's order delays this node and further claims, and no other node's next order.
func TestAnotherWriterDelaysOneNode(t *testing.T) {
	m := newStill(t, "w0", "w1", "w2")
	decide := m.fetched()
	m.setSpec(fleetv1.RolloutResource(), "r", map[string]any{"maxUnavailable": 3, "failureLimit": 3})
	wrote := false
	m.beforeOrders(func(node string) {
		if node == "w0" && !wrote {
			wrote = true
			m.setSpec(fleetv1.StateResource(), "w0", map[string]any{"reason": "another writer"})
		}
	})
	released := func() (names []string) {
		for _, name := range []string{"w0", "w1"} {
			if m.state(name).Spec.Released {
				names = append(names, name)
			}
		}
		return names
	}
	decide()
	if got := released(); !slices.Equal(got, []string{"w1"}) || m.state("w2").Spec.Rollout != "" {
		t.Errorf("released: %v; w2 is %+v", got, m.state("w2").Spec)
	}
	decide()
	if got := released(); len(got) != 2 || m.state("w2").Spec.Rollout != "r" {
		t.Errorf("after the next decision, released: %v; w2 is %+v", got, m.state("w2").Spec)
	}
}

// A decision of many actions ends when a person gives the rollout another order.
func TestAnAbortEndsARound(t *testing.T) {
	m := newStill(t, "w0", "w1")
	decide := m.fetched()
	m.beforeOrders(func(string) {
		m.setSpec(fleetv1.RolloutResource(), "r", map[string]any{"operation": "Abort"})
	})
	decide()
	if a, b := m.state("w0").Spec, m.state("w1").Spec; !a.Released || b.Released {
		t.Errorf("after an abort during the first of two releases, they are %t, %t", a.Released, b.Released)
	}
	decide()
	if s := m.state("w1").Spec; s.Rollout != "" || s.Released {
		t.Errorf("w1 is not let go: %+v", s)
	}
}

// A node whose services may not run gets no further pods, also if the rollout drains no node.
func TestAFailedNodeThatMayNotWorkIsCordoned(t *testing.T) {
	m := newStill(t, "w0", "w1")
	decide := m.fetched()
	decide()
	m.report("w0", fleetv1.PhaseFailed)
	m.report("w1", fleetv1.PhaseRolledBack)
	decide()
	for name, want := range map[string]bool{"w0": true, "w1": false} {
		if got := m.cordoned(name); got != want || m.state(name).Spec.Verdict != fleetv1.VerdictFailed {
			t.Errorf("%s is cordoned: %t; its order is %+v", name, got, m.state(name).Spec)
		}
	}
}

// A selector with a typing error is no finished rollout.
func TestARolloutWithoutNodesIsNotAvailable(t *testing.T) {
	m := newStill(t, "w0")
	ten := intstr.FromString("10%")
	m.rollout("r", func(s *fleetv1.NodeRolloutSpec) {
		s.Selector.MatchLabels, s.MaxUnavailable = map[string]string{"pool": "q"}, &ten
	})
	m.reconcile("r", m.reconciler(time.Now))
	s := m.status("r")
	if s.State != rollout.StateWaiting || !meta.IsStatusConditionFalse(s.Conditions, fleetv1.Available) {
		t.Errorf("the status is %+v", s)
	}
}
