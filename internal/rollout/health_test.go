package rollout_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
)

// The clock of a node decides neither how long the controller waits for it, nor that it does not wait.
func TestTheClockOfANodeIsNotBelieved(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	spec := fleetv1.NodeRolloutSpec{Drain: &fleetv1.Drain{Timeout: "5m"}, ProgressDeadline: "15m",
		Health: fleetv1.NodeHealth{Timeout: "5m"}}
	for name, test := range map[string]struct {
		released bool
		phase    fleetv1.Phase
		clock    time.Duration // by which the node's clock is ahead
		after    time.Duration // since the controller's order
		want     rollout.Do
	}{
		"a drain, the clock years ahead":      {false, fleetv1.PhaseFetched, 30_000 * time.Hour, 21 * time.Minute, rollout.DoConvict},
		"a drain, the clock behind":           {false, fleetv1.PhaseFetched, -time.Hour, time.Minute, rollout.DoDrain},
		"a check, the clock years ahead":      {true, fleetv1.PhaseDone, 30_000 * time.Hour, 21 * time.Minute, rollout.DoReturn},
		"a check, the clock an hour behind":   {true, fleetv1.PhaseDone, -time.Hour, time.Minute, ""},
		"a check, the clock behind, too late": {true, fleetv1.PhaseDone, -time.Hour, 6 * time.Minute, rollout.DoReturn},
	} {
		ordered := now.Add(-test.after)
		n := recorded("w0", fleetv1.NodeStateSpec{Action: fleetv1.ActionApply, Released: test.released,
			Since: metav1.NewTime(ordered)})
		n.State.Status = fleetv1.NodeStateStatus{Hash: n.State.Spec.Hash, Action: fleetv1.ActionApply, Phase: test.phase,
			Since: metav1.NewMicroTime(ordered.Add(test.clock))}
		d := rollout.Decide(rollout.Input{Name: "r", Spec: spec, Nodes: []rollout.Node{n}, Now: now})
		got := rollout.Do("")
		if len(d.Actions) > 0 {
			got = d.Actions[0].Do
		}
		if got != test.want {
			t.Errorf("%s: the action is %q, want %q", name, got, test.want)
		}
	}
}

// A duration that is too long for Go is the longest one, and not none.
func TestADurationThatIsTooLong(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{ProgressDeadline: "9999999h", Drain: &fleetv1.Drain{Timeout: "9999999h"},
		Health: fleetv1.NodeHealth{Timeout: "9999999h"},
		Canary: []fleetv1.CanaryStep{{Nodes: intstr.FromInt32(1), Pause: "9999999h"}}}, good, good)
	for range 20 {
		for _, a := range m.decide().Actions {
			m.act(a)
		}
		for _, n := range m.nodes {
			m.report(n.Name)
		}
		m.now = m.now.Add(24 * time.Hour)
	}
	if s := m.decide().Status; s.Updated != 1 || s.State != rollout.StateWaiting || len(m.touched) != 1 {
		t.Errorf("in the canary's pause, %d nodes were touched; the status is %+v", len(m.touched), s)
	}
}

// The settle time follows the timeout, so it may be longer, and the next renewal of the lease follows both. A node that
// is not Ready has the timeout alone.
func TestTheSettleTimeFollowsTheTimeout(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	spec := fleetv1.NodeRolloutSpec{Health: fleetv1.NodeHealth{Settle: "10m"}}
	const never, first = 0, time.Second
	for name, test := range map[string]struct {
		ready             bool
		lease, readyAfter time.Duration // since the change
		after             time.Duration // since the change
		want              rollout.Do
		again             time.Duration
	}{
		"Ready, and not settled":               {true, first, 0, 6 * time.Minute, "", 4 * time.Minute},
		"Ready, and settled":                   {true, 10*time.Minute + 1, 0, 10*time.Minute + 2, rollout.DoConvict, 0},
		"settled, before the next renewal":     {true, 10 * time.Minute, 0, 10*time.Minute + 1, "", 2 * time.Second},
		"settled, without another renewal":     {true, 10 * time.Minute, 0, 11 * time.Minute, rollout.DoReturn, 0},
		"Ready at the last moment":             {true, first, 5 * time.Minute, 14 * time.Minute, "", time.Minute},
		"Ready again, renewed before that":     {true, 11 * time.Minute, 2 * time.Minute, 12*time.Minute + 1, "", 2 * time.Second},
		"Ready too late":                       {true, first, 6 * time.Minute, 15 * time.Minute, rollout.DoReturn, 0},
		"not Ready, before the timeout":        {false, never, 0, 4 * time.Minute, "", time.Minute},
		"not Ready, after the timeout":         {false, first, 0, 5 * time.Minute, rollout.DoReturn, 0},
		"without a renewal, after the timeout": {true, never, 0, 5 * time.Minute, rollout.DoReturn, 0},
	} {
		changed := now.Add(-test.after)
		n := recorded("w0", fleetv1.NodeStateSpec{Action: fleetv1.ActionApply, Released: true, Since: metav1.NewTime(changed)})
		n.Ready, n.ReadySince = test.ready, changed.Add(test.readyAfter)
		n.Lease = changed.Add(test.lease)
		n.State.Status = fleetv1.NodeStateStatus{Hash: n.State.Spec.Hash, Action: fleetv1.ActionApply,
			Phase: fleetv1.PhaseDone, Since: metav1.NewMicroTime(changed)}
		d := rollout.Decide(rollout.Input{Name: "r", Spec: spec, Nodes: []rollout.Node{n}, Now: now})
		got := rollout.Do("")
		if len(d.Actions) > 0 {
			got = d.Actions[0].Do
		}
		if got != test.want || d.Again != test.again {
			t.Errorf("%s: the action is %q, again after %s; want %q, %s", name, got, d.Again, test.want, test.again)
		}
	}
}
