package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// decided returns the decision at noon about nodes of the rollout r.
func decided(spec fleetv1.NodeRolloutSpec, wrong string, nodes ...rollout.Node) rollout.Decision {
	return rollout.Decide(rollout.Input{Name: "r", Spec: spec, Nodes: nodes, Now: noon, Wrong: wrong, Generation: 2})
}

// ended returns a node with a verdict about the content.
func ended(name string, verdict fleetv1.Verdict) rollout.Node {
	return reporting(recorded(name, fleetv1.NodeStateSpec{Action: fleetv1.ActionApply, Verdict: verdict, Released: true,
		Since: metav1.NewTime(noon.Add(-time.Hour))}), fleetv1.PhaseDone, "")
}

// reporting adds a report to a node that answers its order.
func reporting(n rollout.Node, phase fleetv1.Phase, message string) rollout.Node {
	n.State.Status = fleetv1.NodeStateStatus{Hash: n.State.Spec.Hash, Action: n.State.Spec.Action, Phase: phase,
		Message: message, Since: metav1.NewMicroTime(n.State.Spec.Since.Time)}
	return n
}

func claimed(d rollout.Decision) (names []string) {
	for _, a := range d.Actions {
		if a.Do == rollout.DoClaim {
			names = append(names, a.Node)
		}
	}
	return names
}

func TestHowManyNodesAreClaimed(t *testing.T) {
	untouched := func(name string) rollout.Node { return rollout.Node{Name: name, Ready: true} }
	left := untouched("z")
	left.Ready = false
	back := func(spec fleetv1.NodeRolloutSpec) fleetv1.NodeRolloutSpec {
		spec.Operation = fleetv1.OperationRollBack
		return spec
	}
	taken := ended("d", fleetv1.VerdictFailed)
	taken.State.Spec.Action, taken.State.Status.Action = fleetv1.ActionRollBack, fleetv1.ActionRollBack
	for name, test := range map[string]struct {
		spec  fleetv1.NodeRolloutSpec
		nodes []rollout.Node
		want  string
	}{
		"no node may be unavailable, which is one": {fleetv1.NodeRolloutSpec{MaxUnavailable: number(0)},
			[]rollout.Node{untouched("a"), untouched("b")}, "a"},
		"a canary step has one node more": {fleetv1.NodeRolloutSpec{MaxUnavailable: number(4),
			Canary: []fleetv1.CanaryStep{{Nodes: intstr.FromInt32(2)}}},
			[]rollout.Node{ended("a", fleetv1.VerdictUpdated), untouched("b"), untouched("c"), untouched("d")}, "b"},
		"the failure limit has two nodes more": {fleetv1.NodeRolloutSpec{MaxUnavailable: number(9), FailureLimit: 3},
			[]rollout.Node{ended("a", fleetv1.VerdictFailed), untouched("b"), untouched("c"), untouched("d")}, "b c"},
		"a rollback of usable nodes has the places of the usable": {
			back(fleetv1.NodeRolloutSpec{MaxUnavailable: number(2)}),
			[]rollout.Node{ended("a", fleetv1.VerdictUpdated), ended("b", fleetv1.VerdictUpdated), left}, "a"},
		"a rollback of a node whose return has failed": {back(fleetv1.NodeRolloutSpec{MaxUnavailable: number(2)}),
			[]rollout.Node{taken}, ""},
	} {
		if got := strings.Join(claimed(decided(test.spec, "", test.nodes...)), " "); got != test.want {
			t.Errorf("%s: claimed %q, want %q", name, got, test.want)
		}
	}
}

func TestSharesAreRoundedDown(t *testing.T) {
	for share, want := range map[string]int{"50%": 99, "100%": 199, "0%": 1, "x": 1} {
		if _, most, _ := rollout.Step([]fleetv1.CanaryStep{{Nodes: intstr.FromString(share)}}, 199, nil, noon); most != want {
			t.Errorf("%s of 199 nodes is %d, want %d", share, most, want)
		}
	}
}

func TestStatesAndTheirMessages(t *testing.T) {
	back := fleetv1.NodeRolloutSpec{Operation: fleetv1.OperationRollBack}
	earlier := ended("a", fleetv1.VerdictRolledBack)
	earlier.State.Spec.Hash = "an earlier content"
	broken := ended("a", fleetv1.VerdictFailed)
	broken.State.Status.Phase = fleetv1.PhaseFailed
	released := recorded("b", fleetv1.NodeStateSpec{Action: fleetv1.ActionRollBack, Released: true,
		Since: metav1.NewTime(noon)})
	var tired []rollout.Node
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		tired = append(tired, rollout.Node{Name: name})
	}
	for name, test := range map[string]struct {
		spec           fleetv1.NodeRolloutSpec
		wrong          string
		nodes          []rollout.Node
		state, message string
	}{
		"too few nodes are available": {fleetv1.NodeRolloutSpec{}, "",
			[]rollout.Node{{Name: "a"}, {Name: "b", Ready: true}}, rollout.StateWaiting,
			"too many nodes are cordoned or not Ready: make them available, or raise spec.maxUnavailable"},
		"five nodes are named": {fleetv1.NodeRolloutSpec{MaxUnavailable: number(9)}, "", tired, rollout.StateWaiting,
			"cordoned or not Ready: a, b, c, d, e; the rollout waits until they are available"},
		"an unknown time zone": {fleetv1.NodeRolloutSpec{Window: &fleetv1.Window{Start: "10:00", End: "14:00",
			TimeZone: "No/Where"}}, "", []rollout.Node{{Name: "a", Ready: true}}, rollout.StateWaiting,
			"spec.window.timeZone: unknown time zone No/Where; use a name such as Europe/Berlin"},
		"nodes that have failed, and others that returned": {fleetv1.NodeRolloutSpec{FailureLimit: 2}, "",
			[]rollout.Node{broken, ended("b", fleetv1.VerdictRolledBack)}, rollout.StateComplete,
			"all but 2 nodes have the content"},
		"one node has failed, and one is updated, in a rollback": {back, "",
			[]rollout.Node{broken, ended("b", fleetv1.VerdictUpdated)}, rollout.StateRollingBack, ""},
		"a new content after a rollback": {fleetv1.NodeRolloutSpec{}, "", []rollout.Node{earlier}, rollout.StateRolling, ""},
		"a new content in a rollback": {back, "", []rollout.Node{earlier}, rollout.StateStopped, "spec.operation is RollBack, " +
			"and an earlier content was taken back: `swdt fleet resume` brings this content to the nodes"},
		"a wrong content to take back": {back, "it is wrong", []rollout.Node{ended("a", fleetv1.VerdictUpdated)},
			rollout.StateStopped, "it is wrong"},
		"a wrong content, and a node on its way back": {back, "it is wrong",
			[]rollout.Node{ended("a", fleetv1.VerdictUpdated), released}, rollout.StateRollingBack, "it is wrong"},
		"a wrong content, and no node to take back": {back, "it is wrong", []rollout.Node{broken}, rollout.StateRolledBack,
			"1 nodes failed, before the rollback or in it: their NodeStates have the reasons"},
	} {
		s := decided(test.spec, test.wrong, test.nodes...).Status
		if s.State != test.state || s.Message != test.message {
			t.Errorf("%s: the status is %+v", name, s)
		}
	}
}

func TestOneFailedNodeThatHasGoneIsCounted(t *testing.T) {
	spec := fleetv1.NodeRolloutSpec{FailureLimit: 1}
	s := rollout.Decide(rollout.Input{Name: "r", Spec: spec, Nodes: []rollout.Node{{Name: "b", Ready: true}}, Now: noon,
		Before: fleetv1.NodeRolloutStatus{Hash: rollout.HashOf(spec.Content),
			FailedNodes: []fleetv1.FailedNode{{Name: "a", StateUID: "1"}}}}).Status
	if want := "0 of 1 nodes, and 1 that have gone since, failed; "; !strings.HasPrefix(s.Message, want) {
		t.Errorf("the message is %q", s.Message)
	}
}

func TestProgressing(t *testing.T) {
	for state, want := range map[string]bool{rollout.StateRolling: true, rollout.StateWaiting: true,
		rollout.StateRollingBack: true, rollout.StatePaused: false, rollout.StateStopped: false,
		rollout.StateAborted: false, rollout.StateRolledBack: false, rollout.StateComplete: false} {
		if got := rollout.Progressing(fleetv1.NodeRolloutStatus{State: state}); got != want {
			t.Errorf("%s: %t", state, got)
		}
	}
}

func TestDegraded(t *testing.T) {
	gone := []fleetv1.FailedNode{{Name: "a"}}
	for name, test := range map[string]struct {
		status fleetv1.NodeRolloutStatus
		want   bool
	}{
		"nothing has failed":              {fleetv1.NodeRolloutStatus{Nodes: 2, Updated: 1}, false},
		"a node has failed":               {fleetv1.NodeRolloutStatus{Nodes: 2, Updated: 1, Failed: 1}, true},
		"a failed node has gone":          {fleetv1.NodeRolloutStatus{Nodes: 2, Updated: 1, FailedNodes: gone}, true},
		"all are updated, and one is new": {fleetv1.NodeRolloutStatus{Nodes: 2, Updated: 2, FailedNodes: gone}, false},
	} {
		if got := rollout.Degraded(test.status); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestCheckWindow(t *testing.T) {
	for zone, valid := range map[string]bool{"": true, "Europe/Berlin": true, "No/Where": false} {
		if err := rollout.CheckWindow(&fleetv1.Window{TimeZone: zone}); (err == nil) != valid {
			t.Errorf("%q: %v", zone, err)
		}
	}
	if err := rollout.CheckWindow(nil); err != nil {
		t.Errorf("without a window: %v", err)
	}
}

// An abort lets go of a node that has not begun.
func TestAnAbortEndsClaims(t *testing.T) {
	n := recorded("a", fleetv1.NodeStateSpec{Action: fleetv1.ActionApply, Since: metav1.NewTime(noon)})
	d := decided(fleetv1.NodeRolloutSpec{Operation: fleetv1.OperationAbort}, "", n)
	if len(d.Actions) != 1 || d.Actions[0].Do != rollout.DoLetGo {
		t.Errorf("the actions are %+v", d.Actions)
	}
}

// The reason for a verdict says what was missing, with the node's last words about this order.
func TestReasons(t *testing.T) {
	since := func(ago time.Duration, released bool) rollout.Node {
		return recorded("a", fleetv1.NodeStateSpec{Action: fleetv1.ActionApply, Released: released,
			Since: metav1.NewTime(noon.Add(-ago))})
	}
	of := func(n rollout.Node, hash string) rollout.Node {
		n.State.Status.Hash = hash
		return n
	}
	health := func(n rollout.Node, ready bool, readyAfter, lease time.Duration) rollout.Node {
		changed := n.State.Spec.Since.Time
		n.Ready, n.ReadySince, n.Lease = ready, changed.Add(readyAfter), changed.Add(lease)
		return n
	}
	done := func() rollout.Node { return reporting(since(time.Hour, true), fleetv1.PhaseDone, "") }
	for name, test := range map[string]struct {
		node rollout.Node
		want string // "": no action
	}{
		"a slow fetch": {reporting(since(time.Hour, false), fleetv1.PhaseWorking, "half of it"),
			"the node is unchanged: it did not fetch the binaries within 15m0s: half of it"},
		"a slow fetch, and a report about an earlier order": {
			of(reporting(since(time.Hour, false), fleetv1.PhaseWorking, "half of it"), "earlier"),
			"the node is unchanged: it did not fetch the binaries within 15m0s"},
		"a slow change":                {since(time.Hour, true), "the node did not report an end within 15m0s"},
		"an earlier order rolled back": {of(reporting(since(time.Minute, true), fleetv1.PhaseRolledBack, "bad"), "earlier"), ""},
		"an earlier order failed":      {of(reporting(since(time.Minute, true), fleetv1.PhaseFailed, "bad"), "earlier"), ""},
		"this order failed":            {reporting(since(time.Minute, true), fleetv1.PhaseFailed, "bad"), "bad"},
		"not Ready":                    {health(done(), false, 0, 0), "the node was not Ready 5m0s after the change"},
		"no lease": {health(done(), true, 0, 0),
			"the kubelet did not renew the node's lease within 5m0s of the change"},
		"Ready too late": {health(done(), true, 6*time.Minute, time.Minute),
			"the node was Ready, or Ready again, more than 5m0s after the change"},
		"no further lease": {health(done(), true, 0, 2*time.Second),
			"the kubelet has not renewed the node's lease since 2s after the change"},
	} {
		d := decided(fleetv1.NodeRolloutSpec{}, "", test.node)
		got := ""
		if len(d.Actions) > 0 {
			got = d.Actions[0].Reason
		}
		if got != test.want || test.want == "" && len(d.Actions) > 0 {
			t.Errorf("%s: the reason is %q, want %q; the actions are %+v", name, got, test.want, d.Actions)
		}
	}
}

// A lease is read only while it decides.
func TestLeasesThatAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		ready        bool
		after, lease time.Duration // since the change
		want         bool
	}{
		"not Ready":                       {false, 0, 0, false},
		"not renewed":                     {true, time.Second, 0, true},
		"renewed, and not settled":        {true, 5 * time.Second, time.Second, false},
		"settled, and not renewed since":  {true, 11 * time.Second, time.Second, true},
		"settled, and renewed since then": {true, 12 * time.Second, 11 * time.Second, false},
	} {
		n := recorded("a", fleetv1.NodeStateSpec{Action: fleetv1.ActionApply, Released: true,
			Since: metav1.NewTime(noon.Add(-test.after))})
		n = reporting(n, fleetv1.PhaseDone, "")
		n.Ready, n.ReadySince = test.ready, n.State.Spec.Since.Time
		n.Lease = n.ReadySince.Add(test.lease)
		d := decided(fleetv1.NodeRolloutSpec{}, "", n)
		if got := slices.Contains(d.Check, "a"); got != test.want {
			t.Errorf("%s: read %t, want %t", name, got, test.want)
		}
	}
}
