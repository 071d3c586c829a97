package rollout_test

import (
	"fmt"
	"slices"
	"time"

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
	late           // the transaction succeeds, and the node reports it an hour after its release
	sticks         // good, but the pods of the node do not leave for a rollback
	dies           // the transaction succeeds, and the kubelet ends 10 s later
	doubts         // good, but the node refuses one order of three
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
	// generation is that of spec. A test that changes spec in a way that matters for a rollback raises it.
	generation int64
	content    map[string]bool        // the nodes that run the content
	ends       map[string]time.Time   // when the kubelet of a node ends
	orders     map[string]int         // that the node had to confirm
	refused    map[string]metav1.Time // the last order that the node has refused
}

func newModel(spec fleetv1.NodeRolloutSpec, fates ...fate) *model {
	spec.Content.Provisioners = []fleetv1.Provisioner{{Name: "kubelet"}}
	m := &model{spec: spec, fates: map[string]fate{}, touched: map[string]bool{}, begun: map[string]bool{},
		early: map[string]bool{}, content: map[string]bool{}, ends: map[string]time.Time{}, generation: 1,
		orders: map[string]int{}, refused: map[string]metav1.Time{},
		now: time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)}
	for i, f := range fates {
		name := fmt.Sprintf("w%03d", i)
		m.nodes = append(m.nodes, rollout.Node{Name: name, Ready: true, ReadySince: m.now.Add(-time.Hour)})
		m.fates[name] = f
	}
	return m
}

func (m *model) decide() rollout.Decision {
	m.renew()
	d := rollout.Decide(rollout.Input{Name: "r", Spec: m.spec, Generation: m.generation, Nodes: m.nodes, Now: m.now,
		Before: m.status})
	m.status = d.Status
	return d
}

// renew makes the kubelets renew their leases, as they do every 10 s. The control plane takes a node whose kubelet has
// ended for Ready during 40 s more.
func (m *model) renew() {
	for i := range m.nodes {
		n := &m.nodes[i]
		last := m.now.Truncate(10 * time.Second)
		if end, ended := m.ends[n.Name]; ended && m.now.After(end) {
			last = end.Truncate(10 * time.Second)
			if n.Ready && m.now.Sub(last) > 40*time.Second {
				n.Ready, n.ReadySince = false, m.now
			}
		}
		if n.Ready {
			n.Lease = last
		}
	}
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
			Action: a.Order, Content: m.spec.Content, Reason: a.Reason}, Status: statusOf(*n)}
		if a.Order == fleetv1.ActionRollBack {
			n.State.Spec.RollbackGeneration = m.generation
		}
		m.touched[a.Node] = true
	}
	spec := &n.State.Spec
	begins := a.Do == rollout.DoDrain || a.Do == rollout.DoRelease
	if begins && spec.Action == fleetv1.ActionApply && n.State.Status.Phase != fleetv1.PhaseFetched {
		m.early[a.Node] = true
	}
	if a.Do == rollout.DoDrain && (m.fates[a.Node] == keeps ||
		m.fates[a.Node] == sticks && spec.Action == fleetv1.ActionRollBack) {
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
	answered := n.State.Status.Hash == n.State.Spec.Hash && n.State.Status.Action == n.State.Spec.Action &&
		(n.State.Status.Phase != fleetv1.PhaseRefused || n.State.Spec.Since == m.refused[name])
	if m.refuse(n, answered) {
		return
	}
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
		case dies:
			m.ends[name] = m.now.Add(10 * time.Second)
		case silent:
			return
		case late:
			if m.now.Sub(n.State.Spec.Since.Time) < time.Hour {
				return
			}
		}
		m.content[name] = phase == fleetv1.PhaseDone
	} else {
		n.Ready, n.ReadySince = true, m.now
		delete(m.ends, name)
		m.content[name] = false
	}
	n.State.Status = fleetv1.NodeStateStatus{Hash: n.State.Spec.Hash, Action: n.State.Spec.Action, Phase: phase,
		Since: metav1.NewMicroTime(m.now)}
}

// refuse makes a node refuse an order, if it does.
func (m *model) refuse(n *rollout.Node, answered bool) bool {
	spec := n.State.Spec
	due := spec.Verdict == "" && (spec.Released || spec.Action == fleetv1.ActionApply) &&
		(!answered || spec.Released && n.State.Status.Phase == fleetv1.PhaseFetched)
	if m.fates[n.Name] != doubts || !due {
		return false
	}
	m.orders[n.Name]++
	if m.orders[n.Name]%3 != 1 {
		return false
	}
	m.refused[n.Name] = spec.Since
	n.State.Status = fleetv1.NodeStateStatus{Hash: spec.Hash, Action: spec.Action, Phase: fleetv1.PhaseRefused,
		Since: metav1.NewMicroTime(m.now), Message: "it is another one"}
	return true
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
		pause, reported := max(decision.Again, time.Second), false
		for _, n := range m.nodes {
			before := statusOf(n)
			m.report(n.Name)
			if statusOf(*m.node(n.Name)) != before { // the report wakes the controller
				pause, reported = time.Second, true
			}
		}
		if len(decision.Actions) == 0 && decision.Again == 0 && !reported {
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
			OnFailure:      rapid.SampledFrom([]fleetv1.OnFailure{"", fleetv1.OnFailureRollback, fleetv1.OnFailurePause}).Draw(t, "onFailure"),
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
