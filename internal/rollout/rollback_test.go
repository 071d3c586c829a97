package rollout_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
)

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
		m := newModel(specs().Draw(t, "spec"), fatesOf(t, good, good, good, notReady, late, sticks, rollsBack, dies, doubts)...)
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
