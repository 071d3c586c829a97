package control_test

import (
	"context"
	"testing"
	"time"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/testing/fleettest"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// A node whose power is cut in the middle of a swap starts again, and the next pod reports what the guardian has made
// of the swap: before the swap it is undone, after it, it is finished. No cordon is left.
func TestANodeThatRestartsOnARealAPIServer(t *testing.T) {
	g := &gates{lab: newLab(t), all: fleettest.Machines(t, 1), depot: fleettest.NewDepot(t, map[string][]byte{})}
	g.nodes("w0")
	g.controller()
	g.spec = fleetv1.NodeRolloutSpec{Drain: &fleetv1.Drain{}, Health: fleetv1.NodeHealth{Settle: "100ms"}}
	token := g.account("swdt-node", "w0")
	for _, restart := range []struct {
		name, version string
		after         simulated.Kind
		state         string
		verdict       fleetv1.Verdict
		phase         fleetv1.Phase
	}{
		{"while the old kubelet stops", "v1.37.2", simulated.OpServiceStop, rollout.StateStopped, fleetv1.VerdictFailed,
			fleetv1.PhaseRolledBack},
		{"when the new kubelet has started", "v1.37.3", simulated.OpServiceStart, rollout.StateComplete,
			fleetv1.VerdictUpdated, fleetv1.PhaseDone},
	} {
		t.Run(restart.name, func(t *testing.T) {
			m := g.all[0]
			before := m.First
			wanted := g.build(restart.version)
			pod := g.programWith(token, m, t.TempDir())
			cut := cutsPower(m, restart.after)
			g.rollout(g.spec)
			g.awaitCut(t, cut)
			pod() // it ends with the node
			m.Restore()
			defer g.programWith(token, m, t.TempDir())()
			g.settle(restart.state)
			s := g.state(t, "w0")
			if s.Spec.Verdict != restart.verdict || s.Status.Phase != restart.phase || s.Status.Journal == "" {
				t.Errorf("the order is %+v; the node reports %+v", s.Spec.Verdict, s.Status)
			}
			runs := map[fleetv1.Verdict][]byte{fleetv1.VerdictFailed: before, fleetv1.VerdictUpdated: wanted}
			g.run(t, runs[restart.verdict], "after the restart")
			g.unschedulable([]string{"w0"})
		})
	}
}

// cutsPower makes the guardian's first operation of this kind on the kubelet's service cut the power of m. The
// channel is closed then.
func cutsPower(m *fleettest.Machine, after simulated.Kind) <-chan struct{} {
	cut := make(chan struct{})
	m.Machine.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Service != layout.GuardianService || op.Kind != after || op.Target != "kubelet" || op.Phase != simulated.After {
			return simulated.Continue()
		}
		select {
		case <-cut:
			return simulated.Continue()
		default:
		}
		close(cut)
		m.Cut()
		return simulated.PowerCut()
	})
	return cut
}

func (g *gates) awaitCut(t *testing.T, cut <-chan struct{}) {
	t.Helper()
	err := wait.Condition{Name: "the power to be cut", Interval: 10 * time.Millisecond, Limit: g.limit,
		Look: func(context.Context) error {
			select {
			case <-cut:
				return nil
			default:
				return errNotYet
			}
		}}.Wait(t.Context())
	if err != nil {
		t.Fatalf("%v: %+v", err, g.state(t, "w0"))
	}
}
