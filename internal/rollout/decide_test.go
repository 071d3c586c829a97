package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
)

// Whatever is lost or late, no more nodes than allowed are unavailable because of a claim, and no
// node is claimed after the failure limit.
func TestLimitsHoldAtEveryMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(specs().Draw(t, "spec"), fatesOf(t, good, good, good, rollsBack, fails, notReady, silent, keeps,
			absent, refuses, dies, doubts)...)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			decision := m.decide()
			claims := 0
			for _, a := range decision.Actions {
				if rapid.IntRange(0, 3).Draw(t, "lost") == 0 { // the controller was killed before this action
					break
				}
				m.act(a)
				if a.Do == rollout.DoClaim {
					claims++
				}
			}
			m.check(t, decision, claims)
			for _, n := range m.nodes {
				if rapid.Bool().Draw(t, "reports") {
					m.report(n.Name)
				}
			}
			m.now = m.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour,
				-time.Minute, -time.Hour, 24 * time.Hour}).Draw(t, "time")) // clocks are also set
			if rapid.IntRange(0, 9).Draw(t, "somebody cordons") == 0 {
				n := &m.nodes[rapid.IntRange(0, len(m.nodes)-1).Draw(t, "node")]
				n.Cordoned = !n.Cordoned
			}
			if rapid.IntRange(0, 9).Draw(t, "failed nodes are replaced") == 0 {
				m.replaceFailed(rapid.Bool().Draw(t, "renamed"))
			}
		}
		if len(m.early) > 0 {
			t.Fatalf("drained or released without binaries: %v", m.early)
		}
	})
}

// A clock that is set back while a rollout runs only delays it: each node still gets the content, and none fails.
func TestAClockThatIsSetBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(specs().Draw(t, "spec"), fatesOf(t, good)...)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			for _, a := range m.decide().Actions {
				m.act(a)
			}
			for _, n := range m.nodes {
				if rapid.Bool().Draw(t, "reports") {
					m.report(n.Name)
				}
			}
			m.now = m.now.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Second, time.Second, -time.Second,
				-time.Minute, -24 * time.Hour}).Draw(t, "time"))
		}
		m.settle(t)
		for _, n := range m.nodes {
			if got := m.verdict(n.Name); got != fleetv1.VerdictUpdated {
				t.Fatalf("%s ended as %q", n.Name, got)
			}
		}
	})
}

// The end of a rollout does not depend on the moments at which the controller was killed.
func TestEveryInterruptionGivesTheSameEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, fates := specs().Draw(t, "spec"), fatesOf(t, good, good, good, rollsBack, doubts)
		// Each node is tried, so the order does not decide.
		spec.FailureLimit, spec.OnFailure = int32(len(fates)+1), fleetv1.OnFailureRollback
		quiet, hurt := newModel(spec, fates...), newModel(spec, fates...)
		quiet.settle(t)
		for range 50 {
			for _, a := range hurt.decide().Actions {
				if rapid.Bool().Draw(t, "lost") {
					break
				}
				hurt.act(a)
			}
			for _, n := range hurt.nodes {
				if rapid.Bool().Draw(t, "reports") {
					hurt.report(n.Name)
				}
			}
			hurt.now = hurt.now.Add(time.Second)
		}
		hurt.settle(t)
		for _, n := range quiet.nodes {
			if a, b := quiet.verdict(n.Name), hurt.verdict(n.Name); a != b || a == "" {
				t.Fatalf("%s ended as %q without interruptions, and as %q with them", n.Name, a, b)
			}
		}
	})
}

// A build that works nowhere touches no more nodes than the failure limit.
func TestABadBuildStopsAtTheFailureLimit(t *testing.T) {
	for _, bad := range []fate{rollsBack, fails, notReady, silent, dies} {
		for limit := 1; limit <= 4; limit++ {
			fates := make([]fate, 40)
			for i := range fates {
				fates[i] = bad
			}
			m := newModel(fleetv1.NodeRolloutSpec{MaxUnavailable: percent("25%"), FailureLimit: int32(limit)}, fates...)
			m.settle(t)
			if len(m.begun) != limit {
				t.Errorf("fate %d, limit %d: %d nodes changed", bad, limit, len(m.begun))
			}
			if s := m.decide().Status; s.State != rollout.StateStopped || int(s.Failed) != limit || s.Working != 0 {
				t.Errorf("fate %d, limit %d: the status is %+v", bad, limit, s)
			}
		}
	}
}

// A cluster that replaces its failed nodes at once does not bring a bad build to more nodes.
func TestReplacedNodesCountAsFailed(t *testing.T) {
	for _, renamed := range []bool{true, false} {
		m := newModel(fleetv1.NodeRolloutSpec{MaxUnavailable: number(1), FailureLimit: 3}, rollsBack, rollsBack, rollsBack,
			rollsBack, rollsBack, rollsBack)
		for range 10 {
			m.settle(t)
			m.replaceFailed(renamed)
		}
		s := m.decide().Status
		if m.gone != 3 || s.State != rollout.StateStopped || len(s.FailedNodes) != 3 || s.Failed != 0 {
			t.Errorf("renamed %t: %d nodes have failed; the status is %+v", renamed, m.gone, s)
		}
		if want := "0 of 6 nodes, and 3 that have gone since, failed; nodes have failed: "; !strings.HasPrefix(s.Message, want) {
			t.Errorf("the message is %q", s.Message)
		}
		if !rollout.Degraded(s) {
			t.Errorf("renamed %t: the rollout is not degraded: %+v", renamed, s)
		}
		m.spec.Content.Provisioners[0].Version = "2" // a new content is a new start
		if d := m.decide(); len(d.Status.FailedNodes) != 0 || len(d.Actions) != 1 {
			t.Errorf("renamed %t: with a new content, the decision is %+v", renamed, d)
		}
	}
}

// One failed node that was replaced is updated like the others, and then the rollout is no longer degraded.
func TestAReplacedNodeIsUpdated(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{MaxUnavailable: number(1), FailureLimit: 2}, rollsBack, good)
	m.settle(t)
	m.replaceFailed(false)
	m.fates["w000"] = good
	m.settle(t)
	if s := m.decide().Status; s.State != rollout.StateComplete || s.Updated != 2 || rollout.Degraded(s) {
		t.Errorf("the status is %+v", s)
	}
}

// Binaries that no node can get cordon, drain and release no node.
func TestNoNodeIsDrainedForMissingBinaries(t *testing.T) {
	for _, missing := range []fate{absent, refuses} {
		m := newModel(fleetv1.NodeRolloutSpec{Drain: &fleetv1.Drain{}, FailureLimit: 2, MaxUnavailable: number(3)},
			missing, missing, missing, missing)
		m.settle(t)
		if s := m.decide().Status; s.State != rollout.StateStopped || s.Failed != 2 || len(m.begun)+len(m.early) > 0 {
			t.Errorf("fate %d: released %v, early %v; the status is %+v", missing, m.begun, m.early, s)
		}
	}
}

// A node does not try a content again that it has refused or rolled back, also not for another rollout.
func TestAnotherRolloutGetsTheSameEnd(t *testing.T) {
	for _, bad := range []fate{refuses, rollsBack} {
		m := newModel(fleetv1.NodeRolloutSpec{Drain: &fleetv1.Drain{}}, bad)
		m.settle(t)
		reported := m.nodes[0].State.Status
		in := rollout.Input{Name: "another", Spec: m.spec, Nodes: m.nodes, Now: m.now}
		if d := rollout.Decide(in); len(d.Actions) != 1 || d.Actions[0].Do != rollout.DoClaim {
			t.Fatalf("fate %d: %+v", bad, d)
		}
		m.act(rollout.Action{Do: rollout.DoClaim, Node: "w000", Order: fleetv1.ActionApply})
		m.nodes[0].State.Spec.Rollout, m.nodes[0].State.Status = in.Name, reported
		d := rollout.Decide(in)
		if len(d.Actions) != 1 || d.Actions[0].Do != rollout.DoConvict || d.Actions[0].Verdict != fleetv1.VerdictFailed {
			t.Errorf("fate %d: %+v", bad, d)
		}
	}
}

// The time for the drain begins when the binaries are there.
func TestALateFetchLeavesTimeForTheDrain(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{Drain: &fleetv1.Drain{Timeout: "5m"}}, good)
	for _, a := range m.decide().Actions {
		m.act(a)
	}
	m.now = m.now.Add(14 * time.Minute)
	if d := m.decide(); len(d.Actions) > 0 || d.Again != time.Minute {
		t.Fatalf("before the binaries are there: %+v", d)
	}
	m.report("w000")
	if d := m.decide(); len(d.Actions) != 1 || d.Actions[0].Do != rollout.DoDrain {
		t.Fatalf("when the binaries are there: %+v", d)
	}
}

// A selector that chooses no node yet decides nothing, also with canary steps.
func TestNoNodeIsChosen(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{Canary: []fleetv1.CanaryStep{{Nodes: intstr.FromInt32(1), Pause: "10m"}}})
	d := m.decide()
	if len(d.Actions) > 0 || d.Status.State != rollout.StateWaiting || !strings.Contains(d.Status.Message, "spec.selector") {
		t.Errorf("the decision is %+v", d)
	}
}

func TestStep(t *testing.T) {
	canary := []fleetv1.CanaryStep{{Nodes: intstr.FromInt32(1), Pause: "10m"},
		{Nodes: intstr.FromString("50%"), Pause: "5m"}}
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	ago := func(minutes ...int) (all []time.Time) {
		for _, m := range minutes {
			all = append(all, now.Add(-time.Duration(m)*time.Minute))
		}
		return all
	}
	type result struct {
		Step, Most int
		Pause      time.Duration
	}
	for name, test := range map[string]struct {
		updated []time.Time
		want    result
	}{
		"first":                        {nil, result{0, 1, 0}},
		"pause":                        {ago(3), result{0, 1, 7 * time.Minute}},
		"second":                       {ago(10), result{1, 3, 0}},
		"any order":                    {ago(1, 12), result{1, 3, 0}},
		"pause from the step's last":   {ago(1, 12, 7), result{1, 3, 4 * time.Minute}},
		"pause not of the next step's": {ago(1, 12, 7, 5), result{2, 7, 0}},
	} {
		var got result
		got.Step, got.Most, got.Pause = rollout.Step(canary, 7, test.updated, now)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// recorded returns a node with an order of the rollout r.
func recorded(name string, spec fleetv1.NodeStateSpec) rollout.Node {
	spec.Rollout, spec.Hash = "r", rollout.HashOf(spec.Content)
	return rollout.Node{Name: name, Ready: true, State: &fleetv1.NodeState{Spec: spec}}
}

// With onFailure: pause, the first failure stops the rollout, so one node tries a content that no node has yet.
func TestAPauseAfterAFailureTriesOneNode(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{MaxUnavailable: number(4), FailureLimit: 4, OnFailure: fleetv1.OnFailurePause},
		notReady, notReady, notReady, notReady)
	m.settle(t)
	if len(m.begun) != 1 {
		t.Errorf("%d nodes have begun", len(m.begun))
	}
}

// A rollout whose last nodes are not available says so.
func TestARolloutThatWaitsForNodesNamesThem(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{MaxUnavailable: number(8)}, good, good, good, good, good, good, good)
	for i := range 6 {
		m.nodes[i].Ready = false
	}
	m.settle(t)
	s := m.decide().Status
	want := "cordoned or not Ready: w000, w001, w002, w003, w004 and 1 more; the rollout waits until they are available"
	if s.State != rollout.StateWaiting || s.Message != want || s.Updated != 1 {
		t.Errorf("the status is %+v", s)
	}
	for i := range 6 {
		m.nodes[i].Ready = true
	}
	m.settle(t)
	if s := m.decide().Status; s.State != rollout.StateComplete {
		t.Errorf("with all nodes available, the status is %+v", s)
	}
}

// With onFailure: pause, each accepted failure lets the rollout go on until the next one, and to its end. A new content
// begins without accepted failures.
func TestAcceptedFailuresLetAPausedRolloutGoOn(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{OnFailure: fleetv1.OnFailurePause}, notReady, good, notReady, good)
	for _, want := range []struct{ accepted, updated, failed int32 }{{0, 0, 1}, {1, 1, 2}} {
		m.spec.AcceptedFailures = &fleetv1.AcceptedFailures{Hash: m.status.Hash, Nodes: want.accepted}
		m.spec.MaxUnavailable = number(int(want.accepted) + 1) // failed nodes are unavailable
		m.settle(t)
		s := m.decide().Status
		if s.State != rollout.StateStopped || s.Updated != want.updated || s.Failed != want.failed ||
			!strings.Contains(s.Message, "swdt fleet resume") || strings.Contains(s.Message, "failureLimit") {
			t.Errorf("with %d accepted failures, the status is %+v", want.accepted, s)
		}
	}
	m.spec.AcceptedFailures.Nodes, m.spec.MaxUnavailable = 2, number(3)
	m.settle(t)
	if s := m.decide().Status; s.State != rollout.StateComplete || s.Updated != 2 || s.Failed != 2 {
		t.Errorf("with all failures accepted, the status is %+v", s)
	}
	m.spec.Content.Provisioners[0].Version = "2"
	for i := range m.nodes {
		m.nodes[i].Ready = true
	}
	m.settle(t)
	if s := m.decide().Status; s.State != rollout.StateStopped || s.Failed != 1 || s.Updated != 0 {
		t.Errorf("with a new content, the status is %+v", s)
	}
}

// A drain rests after each round, however often the decision is made.
func TestADrainRestsBetweenItsRounds(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{Drain: &fleetv1.Drain{}}, keeps)
	for range 2 { // the claim, and the first round
		for _, a := range m.decide().Actions {
			m.act(a)
		}
		m.report("w000")
	}
	m.node("w000").DrainRound = m.now
	m.now = m.now.Add(4 * time.Second)
	if d := m.decide(); len(d.Actions) > 0 || d.Again != time.Second {
		t.Errorf("4 s after a round, the decision is %+v", d)
	}
	m.now = m.now.Add(time.Second)
	if d := m.decide(); len(d.Actions) != 1 || d.Actions[0].Do != rollout.DoDrain {
		t.Errorf("5 s after a round, the decision is %+v", d)
	}
}
