package control_test

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
)

// renewed makes a lease of the node that was renewed after all that this test does.
func (m *memory) renewed(node string) {
	m.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: corev1.NamespaceNodeLease},
		Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now().Add(time.Hour)}}}
	leases := m.admin.Clientset().CoordinationV1().Leases(lease.Namespace)
	if _, err := leases.Create(m.t.Context(), lease, metav1.CreateOptions{}); err != nil {
		m.t.Fatal(err)
	}
}

// The controller moves simulated machines: a good build reaches all of them; a bad one reaches one machine, which
// restores its own; and a rollback takes all machines back.
func TestARolloutMovesSimulatedMachines(t *testing.T) {
	good, bad := fleettest.Kubelet("v1.37.2", ""), fleettest.Kubelet("v1.37.3", simulated.CrashAtStart)
	d := fleettest.NewFileServer(t, map[string][]byte{"good.exe": good, "bad.exe": bad})
	all := fleettest.Machines(t, 3)
	m := newMemory(t, "w0", "w1", "w2")
	programs, cache := &lab{t: t}, t.TempDir()
	for _, machine := range all {
		m.renewed(machine.Name)
		programs.background(func(ctx context.Context) { // it returns the end of ctx
			_ = runProgram(ctx, machine, m.admin.Dynamic(), cache)
		})
	}
	expect := func(state string, failed int32, kubelet func(*fleettest.Machine) []byte) {
		t.Helper()
		m.await("the rollout to be "+state, func() bool {
			s := m.status("r")
			return s.State == state && s.Working == 0 && s.Failed == failed
		})
		for _, machine := range all {
			if !machine.Runs(kubelet(machine)) {
				t.Errorf("%s: %s runs another kubelet", state, machine.Name)
			}
		}
	}
	theGood := func(*fleettest.Machine) []byte { return good }
	m.rollout("r", func(s *fleetv1.NodeRolloutSpec) {
		s.Content, s.FailureLimit, s.Health.Settle = d.Content("good.exe"), 1, "1ms"
	})
	expect(rollout.StateComplete, 0, theGood)
	m.setSpec(fleetv1.RolloutResource(), "r", map[string]any{"content": d.Content("bad.exe")})
	expect(rollout.StateStopped, 1, theGood)
	m.setSpec(fleetv1.RolloutResource(), "r", map[string]any{"content": d.Content("good.exe")})
	expect(rollout.StateComplete, 0, theGood)
	m.setSpec(fleetv1.RolloutResource(), "r", map[string]any{"operation": fleetv1.OperationRollBack})
	expect(rollout.StateRolledBack, 0, func(machine *fleettest.Machine) []byte { return machine.First })
}
