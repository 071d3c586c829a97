package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			absent, refuses, dies)...)
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
			m.now = m.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour}).Draw(t, "time"))
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

// The end of a rollout does not depend on the moments at which the controller was killed.
func TestEveryInterruptionGivesTheSameEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, fates := specs().Draw(t, "spec"), fatesOf(t, good, good, good, rollsBack)
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
	canary := []fleetv1.CanaryStep{{Nodes: intstr.FromInt32(1), Pause: "10m"}, {Nodes: intstr.FromString("50%")}}
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
		"first":       {nil, result{0, 1, 0}},
		"pause":       {ago(3), result{0, 1, 7 * time.Minute}},
		"second":      {ago(10), result{1, 3, 0}},
		"any order":   {ago(1, 12), result{1, 3, 0}},
		"after these": {ago(1, 12, 2), result{2, 7, 0}},
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

// A rollback that ends before a node has begun leaves the node to the next rollback.
func TestAnEndedRollbackForgetsNoNode(t *testing.T) {
	for name, end := range map[string]func(*rollout.Input){
		"an abort":    func(in *rollout.Input) { in.Spec.Operation = fleetv1.OperationAbort },
		"a resume":    func(in *rollout.Input) { in.Spec.Operation = fleetv1.OperationRoll },
		"a bad field": func(in *rollout.Input) { in.Wrong = "spec.window.timeZone: unknown" },
	} {
		m := newModel(fleetv1.NodeRolloutSpec{MaxUnavailable: number(2)}, good, good, good)
		m.settle(t)
		m.spec.Operation = fleetv1.OperationRollBack
		for _, a := range m.decide().Actions {
			m.act(a)
		}
		in := rollout.Input{Name: "r", Spec: m.spec, Nodes: m.nodes, Now: m.now}
		end(&in)
		for _, a := range rollout.Decide(in).Actions {
			m.act(a)
		}
		m.settle(t)
		for _, n := range m.nodes {
			if m.verdict(n.Name) != fleetv1.VerdictRolledBack {
				t.Errorf("after %s, the second rollback leaves %s as %q", name, n.Name, m.verdict(n.Name))
			}
		}
	}
}

// A content that breaks its nodes after their success can be taken back: nodes that do not work need no place of those
// that may stop working. Their pods cannot leave, so they are not drained.
func TestNodesThatDoNotWorkAreTakenBack(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{MaxUnavailable: number(2), Drain: &fleetv1.Drain{}}, good, good, good, good, good)
	m.settle(t)
	for i := range 4 {
		m.nodes[i].Ready, m.fates[m.nodes[i].Name] = false, keeps
	}
	m.spec.Operation = fleetv1.OperationRollBack
	d := m.decide()
	if len(d.Actions) != 2 {
		t.Fatalf("with 4 of 5 nodes not Ready, and 2 that may work at once, the actions are %+v", d.Actions)
	}
	m.settle(t)
	for _, n := range m.nodes {
		if m.verdict(n.Name) != fleetv1.VerdictRolledBack {
			t.Errorf("%s is %q", n.Name, m.verdict(n.Name))
		}
	}
}

// A rollback that has not reached all nodes does not say that no node has the content.
func TestARollbackThatFailsIsNotReportedAsDone(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{Drain: &fleetv1.Drain{}}, good)
	m.settle(t)
	m.spec.Operation, m.fates["w000"] = fleetv1.OperationRollBack, keeps
	m.settle(t)
	if s := m.decide().Status; s.Failed != 1 || s.Message == "no node has the content" {
		t.Errorf("the status is %+v", s)
	}
}

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

// With onFailure: pause, the first failure stops the rollout, so one node tries a content that no node has yet.
func TestAPauseAfterAFailureTriesOneNode(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{MaxUnavailable: number(4), FailureLimit: 4, OnFailure: fleetv1.OnFailurePause},
		notReady, notReady, notReady, notReady)
	m.settle(t)
	if len(m.begun) != 1 {
		t.Errorf("%d nodes have begun", len(m.begun))
	}
}

// rollBack orders a rollback, and lets everything happen until nothing changes.
func (m *model) rollBack(t interface{ Fatal(...any) }) fleetv1.NodeRolloutStatus {
	m.spec.Operation = fleetv1.OperationRollBack
	m.generation++
	m.settle(t)
	return m.decide().Status
}

// Whatever was lost, late or changed before, a rollback leaves the content only on nodes whose pods keep it from them,
// and a second one takes back these, too, when the pods leave.
func TestARollbackReachesEveryNodeWithTheContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(specs().Draw(t, "spec"), fatesOf(t, good, good, good, notReady, late, sticks, rollsBack, dies)...)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			for _, a := range m.decide().Actions {
				if rapid.IntRange(0, 3).Draw(t, "lost") == 0 {
					break
				}
				m.act(a)
			}
			for _, n := range m.nodes {
				if rapid.Bool().Draw(t, "reports") {
					m.report(n.Name)
				}
			}
			m.now = m.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour}).Draw(t, "time"))
			if rapid.IntRange(0, 9).Draw(t, "another order") == 0 {
				m.spec.Operation = rapid.SampledFrom([]fleetv1.Operation{fleetv1.OperationRoll, fleetv1.OperationAbort,
					fleetv1.OperationRollBack}).Draw(t, "operation")
				m.generation++
			}
		}
		m.now = m.now.Add(2 * time.Hour) // late nodes report
		s := m.rollBack(t)
		for name, has := range m.content {
			if has && (m.fates[name] != sticks || m.spec.Drain == nil) {
				t.Fatalf("%s has the content after a rollback: %+v; %+v", name, m.node(name).State, s)
			}
		}
		if s.State != rollout.StateRolledBack {
			t.Fatalf("the status is %+v", s)
		}
		for name, f := range m.fates {
			if f == sticks {
				m.fates[name] = good
			}
		}
		m.rollBack(t)
		for name, has := range m.content {
			if has {
				t.Fatalf("%s has the content after a second rollback: %+v", name, m.node(name).State)
			}
		}
	})
}

// A rollback takes back failed nodes that have the content: the one that onFailure: pause has kept, and the one that
// reported its success too late.
func TestARollbackTakesBackFailedNodes(t *testing.T) {
	for _, f := range []fate{notReady, late} {
		m := newModel(fleetv1.NodeRolloutSpec{Drain: &fleetv1.Drain{}, OnFailure: fleetv1.OnFailurePause}, f, good)
		m.settle(t)
		m.now = m.now.Add(2 * time.Hour)
		m.settle(t) // the late report
		if m.verdict("w000") != fleetv1.VerdictFailed || !m.content["w000"] {
			t.Fatalf("fate %d: w000 does not run the content as a failed node: %+v", f, m.node("w000").State)
		}
		s := m.rollBack(t)
		if s.State != rollout.StateRolledBack || s.RolledBack != 1 || s.Failed != 0 || m.content["w000"] {
			t.Errorf("fate %d: w000 is %q; the status is %+v", f, m.verdict("w000"), s)
		}
		m.spec.Operation = fleetv1.OperationRoll
		s = m.decide().Status
		if want := "1 of 2 nodes failed; "; s.State != rollout.StateStopped || !strings.HasPrefix(s.Message, want) {
			t.Errorf("fate %d: after the rollback, the status is %+v", f, s)
		}
	}
}

// A node whose pods keep it from a rollback is tried once more by each further order, and not by the same one.
func TestEachRollbackTriesAKeptNodeOnce(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{Drain: &fleetv1.Drain{}}, sticks)
	m.settle(t)
	for range 2 {
		if s := m.rollBack(t); s.State != rollout.StateRolledBack || s.Failed != 1 || !m.content["w000"] {
			t.Fatalf("the status is %+v", s)
		}
		if d := m.decide(); len(d.Actions) > 0 {
			t.Fatalf("the same order tries again: %+v", d.Actions)
		}
	}
	m.fates["w000"] = good
	if s := m.rollBack(t); s.State != rollout.StateRolledBack || s.RolledBack != 1 || s.Failed != 0 || m.content["w000"] {
		t.Errorf("without the pods, the status is %+v", s)
	}
}

// A rollback that is ended before it has begun on a failed node leaves the node failed, and not updated.
func TestAnEndedRollbackLeavesAFailedNodeFailed(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{OnFailure: fleetv1.OnFailurePause}, notReady)
	m.settle(t)
	reason := m.node("w000").State.Spec.Reason
	m.spec.Operation = fleetv1.OperationRollBack
	for _, a := range m.decide().Actions {
		m.act(a)
	}
	if m.verdict("w000") != "" {
		t.Fatal("the rollback does not claim the node")
	}
	m.spec.Operation = fleetv1.OperationAbort
	m.settle(t)
	if s := m.node("w000").State.Spec; s.Verdict != fleetv1.VerdictFailed || s.Reason != reason || reason == "" {
		t.Errorf("after the abort, the node is %q: %q, before it was failed: %q", s.Verdict, s.Reason, reason)
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

// A node that was taken back, and whose kubelet does not work, keeps its place until the API server knows it: else a
// rollback that breaks nodes would break more of them at once than may be unavailable.
func TestARollbackWaitsForTheKubelet(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		ready bool
		lease time.Duration // since the report
		after time.Duration // since the report
		want  fleetv1.Verdict
	}{
		"Ready, before the renewal":         {true, -time.Second, 30 * time.Second, ""},
		"Ready, after the renewal":          {true, time.Second, 2 * time.Second, fleetv1.VerdictRolledBack},
		"not Ready":                         {false, -time.Second, time.Second, fleetv1.VerdictRolledBack},
		"Ready, and never renewed, for 5 m": {true, -time.Second, 5 * time.Minute, fleetv1.VerdictRolledBack},
	} {
		reported := now.Add(-test.after)
		n := recorded("w0", fleetv1.NodeStateSpec{Action: fleetv1.ActionRollBack, Released: true, RollbackGeneration: 2,
			Since: metav1.NewTime(reported)})
		n.Ready, n.Lease = test.ready, reported.Add(test.lease)
		n.State.Status = fleetv1.NodeStateStatus{Hash: n.State.Spec.Hash, Action: fleetv1.ActionRollBack,
			Phase: fleetv1.PhaseDone, Since: metav1.NewMicroTime(reported)}
		d := rollout.Decide(rollout.Input{Name: "r", Spec: fleetv1.NodeRolloutSpec{Operation: fleetv1.OperationRollBack},
			Generation: 2, Nodes: []rollout.Node{n}, Now: now})
		got := fleetv1.Verdict("")
		if len(d.Actions) > 0 {
			got = d.Actions[0].Verdict
		}
		if got != test.want || got == "" && len(d.Check) != 1 {
			t.Errorf("%s: the verdict is %q, want %q; the leases %v are read", name, got, test.want, d.Check)
		}
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

// A new content under an old order to roll back is no finished rollback.
func TestANewContentAfterARollback(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{MaxUnavailable: number(2)}, good, good)
	m.settle(t)
	if s := m.rollBack(t); s.State != rollout.StateRolledBack || s.RolledBack != 2 {
		t.Fatalf("after the rollback, the status is %+v", s)
	}
	m.spec.Content.Provisioners[0].Version = "2"
	m.settle(t)
	if s := m.decide().Status; s.State != rollout.StateStopped || !strings.Contains(s.Message, "`swdt fleet resume`") {
		t.Errorf("with a new content, the status is %+v", s)
	}
	m.spec.Operation = fleetv1.OperationRoll
	m.settle(t)
	if s := m.decide().Status; s.State != rollout.StateComplete || s.Updated != 2 {
		t.Errorf("after a resume, the status is %+v", s)
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

// A rollback of a spec that no node would carry out ends, with the reason.
func TestARollbackOfAWrongSpecStops(t *testing.T) {
	m := newModel(fleetv1.NodeRolloutSpec{}, good)
	m.settle(t)
	m.spec.Operation = fleetv1.OperationRollBack
	d := rollout.Decide(rollout.Input{Name: "r", Spec: m.spec, Nodes: m.nodes, Now: m.now, Wrong: "spec.content: wrong"})
	if s := d.Status; len(d.Actions) > 0 || s.State != rollout.StateStopped || s.Message != "spec.content: wrong" {
		t.Errorf("the decision is %+v", d)
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
