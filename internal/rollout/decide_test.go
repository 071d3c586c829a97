package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
)

// fate is the way in which a model node answers an Apply.
type fate int

const (
	good      fate = iota
	rollsBack      // the transaction fails, and the node restores its binaries
	fails          // the node can neither apply nor restore
	notReady       // the transaction succeeds, but the node does not become Ready
	silent         // the node never answers
	keeps          // the pods of the node do not leave
	absent         // the node never fetches the binaries, for example without a pull secret
	refuses        // the binaries are not those of the content
)

// model is a cluster whose nodes have a fate each. Time passes only when a step moves it.
type model struct {
	spec    fleetv1.NodeRolloutSpec
	nodes   []rollout.Node
	fates   map[string]fate
	now     time.Time
	status  fleetv1.NodeRolloutStatus // as the last decision has written it
	touched map[string]bool           // by a claim for Apply
	begun   map[string]bool           // the node was released
	early   map[string]bool           // the node was drained or released before it had the binaries
	gone    int                       // failed nodes that were replaced
	states  int                       // NodeStates made so far
}

func newModel(spec fleetv1.NodeRolloutSpec, fates ...fate) *model {
	spec.Content.Provisioners = []fleetv1.Provisioner{{Name: "kubelet"}}
	m := &model{spec: spec, fates: map[string]fate{}, touched: map[string]bool{}, begun: map[string]bool{},
		early: map[string]bool{},
		now:   time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)}
	for i, f := range fates {
		name := fmt.Sprintf("w%03d", i)
		m.nodes = append(m.nodes, rollout.Node{Name: name, Ready: true, ReadySince: m.now.Add(-time.Hour)})
		m.fates[name] = f
	}
	return m
}

func (m *model) decide() rollout.Decision {
	d := rollout.Decide(rollout.Input{Name: "r", Spec: m.spec, Nodes: m.nodes, Now: m.now, Before: m.status})
	m.status = d.Status
	return d
}

func (m *model) node(name string) *rollout.Node {
	for i := range m.nodes {
		if m.nodes[i].Name == name {
			return &m.nodes[i]
		}
	}
	panic("no node " + name)
}

// act carries out one action, as the controller does.
func (m *model) act(a rollout.Action) {
	n := m.node(a.Node)
	if a.Do == rollout.DoClaim {
		m.states++
		uid := types.UID(fmt.Sprint("state ", m.states))
		if n.State != nil {
			uid = n.State.UID
		}
		n.State = &fleetv1.NodeState{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: fleetv1.NodeStateSpec{Rollout: "r", Hash: rollout.HashOf(m.spec.Content),
			Action: a.Order, Content: m.spec.Content}}
		m.touched[a.Node] = true
	}
	spec := &n.State.Spec
	begins := a.Do == rollout.DoDrain || a.Do == rollout.DoRelease
	if begins && spec.Action == fleetv1.ActionApply && n.State.Status.Phase != fleetv1.PhaseFetched {
		m.early[a.Node] = true
	}
	if a.Do == rollout.DoDrain && m.fates[a.Node] == keeps {
		return
	}
	spec.Since = metav1.NewTime(m.now)
	switch a.Do {
	case rollout.DoDrain, rollout.DoRelease:
		spec.Released = true
		m.begun[a.Node] = true
	case rollout.DoReturn:
		spec.Action, spec.Reason = fleetv1.ActionRollBack, a.Reason
	case rollout.DoConvict:
		spec.Verdict, spec.Reason = a.Verdict, a.Reason
	case rollout.DoLetGo:
		n.State = nil
	}
}

// report makes a node do its order, if it has one.
func (m *model) report(name string) {
	n := m.node(name)
	if n.State == nil {
		return
	}
	answered := n.State.Status.Hash == n.State.Spec.Hash && n.State.Status.Action == n.State.Spec.Action
	fetches := !n.State.Spec.Released && n.State.Spec.Action == fleetv1.ActionApply && !answered
	if fetches {
		m.fetch(n)
	}
	if !n.State.Spec.Released || answered && n.State.Status.Phase != fleetv1.PhaseFetched {
		return
	}
	phase := fleetv1.PhaseDone
	if n.State.Spec.Action == fleetv1.ActionApply {
		switch m.fates[name] {
		case rollsBack:
			phase = fleetv1.PhaseRolledBack
		case fails:
			phase, n.Ready = fleetv1.PhaseFailed, false
		case notReady:
			n.Ready, n.ReadySince = false, m.now
		case silent:
			return
		}
	} else {
		n.Ready, n.ReadySince = true, m.now
	}
	n.State.Status = fleetv1.NodeStateStatus{Hash: n.State.Spec.Hash, Action: n.State.Spec.Action, Phase: phase,
		Since: metav1.NewMicroTime(m.now)}
	n.Lease = m.now.Add(time.Second)
}

// fetch makes a claimed node fetch the binaries.
func (m *model) fetch(n *rollout.Node) {
	phase := fleetv1.PhaseFetched
	switch m.fates[n.Name] {
	case absent:
		return
	case refuses:
		phase = fleetv1.PhaseRolledBack
	}
	n.State.Status = fleetv1.NodeStateStatus{Hash: n.State.Spec.Hash, Action: n.State.Spec.Action, Phase: phase,
		Since: metav1.NewMicroTime(m.now)}
}

func (m *model) verdict(name string) fleetv1.Verdict {
	if s := m.node(name).State; s != nil {
		return s.Spec.Verdict
	}
	return ""
}

// settle lets everything happen in order until nothing changes for a day.
func (m *model) settle(t interface{ Fatal(...any) }) {
	for range 100_000 {
		decision := m.decide()
		for _, a := range decision.Actions {
			m.act(a)
		}
		pause := max(decision.Again, time.Second)
		for _, n := range m.nodes {
			before := statusOf(n)
			m.report(n.Name)
			if statusOf(*m.node(n.Name)) != before { // the report wakes the controller
				pause = time.Second
			}
		}
		if len(decision.Actions) == 0 && decision.Again == 0 {
			return
		}
		m.now = m.now.Add(pause)
	}
	t.Fatal("the rollout does not come to an end")
}

func statusOf(n rollout.Node) fleetv1.NodeStateStatus {
	if n.State == nil {
		return fleetv1.NodeStateStatus{}
	}
	return n.State.Status
}

func percent(text string) *intstr.IntOrString { v := intstr.FromString(text); return &v }
func number(n int) *intstr.IntOrString        { v := intstr.FromInt(n); return &v }

func specs() *rapid.Generator[fleetv1.NodeRolloutSpec] {
	return rapid.Custom(func(t *rapid.T) fleetv1.NodeRolloutSpec {
		spec := fleetv1.NodeRolloutSpec{
			FailureLimit:   int32(rapid.IntRange(1, 4).Draw(t, "failureLimit")),
			MaxUnavailable: number(rapid.IntRange(1, 5).Draw(t, "maxUnavailable")),
		}
		if rapid.Bool().Draw(t, "percentage") {
			spec.MaxUnavailable = percent(fmt.Sprintf("%d%%", rapid.IntRange(1, 100).Draw(t, "percent")))
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "canary steps") {
			spec.Canary = append(spec.Canary, fleetv1.CanaryStep{Nodes: *number(2*i + 1), Pause: "10m"})
		}
		if rapid.Bool().Draw(t, "drain") {
			spec.Drain = &fleetv1.Drain{}
		}
		return spec
	})
}

func fatesOf(t *rapid.T, of ...fate) []fate {
	return rapid.SliceOfN(rapid.SampledFrom(of), 1, 20).Draw(t, "fates")
}

// replaceFailed replaces each failed node of the status by a new machine, as a cluster that repairs itself does.
// The new node has a name of its own if renamed is true.
func (m *model) replaceFailed(renamed bool) {
	for i, n := range m.nodes {
		seen := func(f fleetv1.FailedNode) bool { return f.Name == n.Name && f.StateUID == n.State.UID }
		if m.verdict(n.Name) != fleetv1.VerdictFailed || !slices.ContainsFunc(m.status.FailedNodes, seen) {
			continue
		}
		m.gone++
		name := n.Name
		if renamed {
			name = fmt.Sprintf("%s-%d", n.Name, m.gone)
		}
		m.fates[name] = m.fates[n.Name]
		m.nodes[i] = rollout.Node{Name: name, Ready: true, ReadySince: m.now}
	}
}

// Whatever is lost or late, no more nodes than allowed are unavailable because of a claim, and no
// node is claimed after the failure limit.
func TestLimitsHoldAtEveryMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(specs().Draw(t, "spec"), fatesOf(t, good, good, good, rollsBack, fails, notReady, silent, keeps,
			absent, refuses)...)
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

func (m *model) check(t *rapid.T, before rollout.Decision, claims int) {
	if claims == 0 {
		return
	}
	most := 1
	switch v := m.spec.MaxUnavailable; v.Type {
	case intstr.Int:
		most = v.IntValue()
	default:
		var percentage int
		fmt.Sscanf(v.StrVal, "%d%%", &percentage)
		most = max(len(m.nodes)*percentage/100, 1)
	}
	s := before.Status
	if total := int(s.Working+s.Unavailable) + claims; total > most {
		t.Fatalf("%d nodes are unavailable after %d claims, at most %d are allowed", total, claims, most)
	}
	if failed := max(int(s.Failed), m.gone); failed >= int(m.spec.FailureLimit) {
		t.Fatalf("claimed a node after %d failures, the limit is %d", failed, m.spec.FailureLimit)
	}
}

// The end of a rollout does not depend on the moments at which the controller was killed.
func TestEveryInterruptionGivesTheSameEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, fates := specs().Draw(t, "spec"), fatesOf(t, good, good, good, rollsBack)
		spec.FailureLimit = int32(len(fates) + 1) // each node is tried, so the order does not decide
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
	for _, bad := range []fate{rollsBack, fails, notReady, silent} {
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
		m.spec.Content.Provisioners[0].Version = "2" // a new content is a new start
		if d := m.decide(); len(d.Status.FailedNodes) != 0 || len(d.Actions) != 1 {
			t.Errorf("renamed %t: with a new content, the decision is %+v", renamed, d)
		}
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
	if len(d.Actions) > 0 || d.Status.State != rollout.StateComplete {
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
