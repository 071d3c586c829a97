package control_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic/fake"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/wait"
)

// store keeps each machine's NodeState in a client of its own. It stands for the API server between a
// decision and the nodes, and for nothing else: package control is tried on a real one.
type store struct {
	t        *testing.T
	machines []*machine
	clients  map[string]*fake.FakeDynamicClient
	ready    time.Time
	cache    string // of all machines' programs
	stop     func()
}

func newStore(ctx context.Context, t *testing.T, all []*machine) *store {
	s := &store{t: t, machines: all, clients: map[string]*fake.FakeDynamicClient{}, ready: time.Now()}
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	s.stop = func() { stop(); running.Wait() }
	t.Cleanup(s.stop)
	s.cache = t.TempDir()
	for _, m := range all {
		scheme := runtime.NewScheme()
		if err := fleetv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		client := fake.NewSimpleDynamicClient(scheme)
		s.clients[m.Name] = client
		running.Go(func() { _ = m.run(ctx, client, s.cache) }) // it returns the end of ctx
	}
	return s
}

func (s *store) state(name string) *fleetv1.NodeState {
	u, err := s.clients[name].Resource(fleetv1.StateResource()).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	var state fleetv1.NodeState
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &state); err != nil {
		s.t.Fatal(err)
	}
	return &state
}

// write writes the spec; a machine may write the status meanwhile.
func (s *store) write(name string, spec fleetv1.NodeStateSpec) {
	resource := s.clients[name].Resource(fleetv1.StateResource())
	state := s.state(name)
	created := state == nil
	if created {
		state = &fleetv1.NodeState{TypeMeta: metav1.TypeMeta{APIVersion: fleetv1.GroupVersion().String(),
			Kind: "NodeState"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	state.Spec = spec
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(state)
	if err != nil {
		s.t.Fatal(err)
	}
	if created {
		_, err = resource.Create(s.t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	} else {
		_, err = resource.Update(s.t.Context(), &unstructured.Unstructured{Object: object}, metav1.UpdateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) decide(spec fleetv1.NodeRolloutSpec) rollout.Decision {
	in := rollout.Input{Name: "r", Spec: spec, Generation: 1, Now: time.Now()}
	for _, m := range s.machines {
		in.Nodes = append(in.Nodes, rollout.Node{Name: m.Name, Ready: true, ReadySince: s.ready,
			Lease: time.Now().Add(time.Hour), State: s.state(m.Name)})
	}
	return rollout.Decide(in)
}

func (s *store) act(spec fleetv1.NodeRolloutSpec, a rollout.Action) {
	order := fleetv1.NodeStateSpec{Rollout: "r", Hash: rollout.HashOf(spec.Content), Action: a.Order,
		Content: spec.Content, Reason: a.Reason}
	if a.Order == fleetv1.ActionRollBack {
		order.RollbackGeneration = 1
	}
	if a.Do != rollout.DoClaim {
		order = s.state(a.Node).Spec
	}
	order.Since = metav1.Now()
	switch a.Do {
	case rollout.DoRelease:
		order.Released = true
	case rollout.DoConvict:
		order.Verdict, order.Reason = a.Verdict, a.Reason
	case rollout.DoLetGo:
		order.Rollout = ""
	}
	s.write(a.Node, order)
}

// expectUnchanged checks that a machine runs its first kubelet, and that its verdict says so.
func (s *store) expectUnchanged(m *machine) {
	s.t.Helper()
	reason := s.state(m.Name).Spec.Reason
	s.t.Log(reason)
	if !m.runs(m.before) || !strings.Contains(reason, "the node is unchanged") {
		s.t.Errorf("it runs its first kubelet: %t; the reason is %q", m.runs(m.before), reason)
	}
}

// awaitLack acts until the node of a machine reports why it cannot fetch its binaries, and returns the reason. The
// node waits, unreleased.
func (s *store) awaitLack(spec fleetv1.NodeRolloutSpec, m *machine) string {
	s.t.Helper()
	var last *fleetv1.NodeState
	err := wait.Condition{Name: m.Name + " to lack its binaries", Interval: 10 * time.Millisecond, Limit: 2 * time.Minute,
		Look: func(context.Context) error {
			for _, a := range s.decide(spec).Actions {
				s.act(spec, a)
			}
			last = s.state(m.Name)
			if last == nil || last.Status.Message == "" || last.Status.Hash != last.Spec.Hash {
				return errNotYet
			}
			return nil
		}}.Wait(s.t.Context())
	if err != nil {
		s.t.Fatalf("%v: %+v", err, last)
	}
	if last.Spec.Released || last.Spec.Verdict != "" || last.Status.Phase != fleetv1.PhaseWorking || !m.runs(m.before) {
		s.t.Errorf("without its binaries, the node's state is %+v", last)
	}
	return last.Status.Message
}

// settle acts until the rollout is in this state and no node works.
func (s *store) settle(spec fleetv1.NodeRolloutSpec, state string) fleetv1.NodeRolloutStatus {
	s.t.Helper()
	var last fleetv1.NodeRolloutStatus
	err := wait.Condition{
		Name: "the rollout to be " + state, Interval: 10 * time.Millisecond, Limit: 2 * time.Minute,
		Look: func(context.Context) error {
			decision := s.decide(spec)
			for _, a := range decision.Actions {
				s.act(spec, a)
			}
			last = decision.Status
			if last.State != state || last.Working > 0 || len(decision.Actions) > 0 {
				return errNotYet
			}
			return nil
		},
	}.Wait(s.t.Context())
	if err != nil {
		s.t.Fatalf("%v: %+v", err, last)
	}
	return last
}

// A good build reaches all machines; a bad one reaches one machine, which restores its own; and a
// rollback takes all machines back.
func TestDecisionsMoveSimulatedMachines(t *testing.T) {
	good, bad := kubelet("v1.37.2", ""), kubelet("v1.37.3", simulated.CrashAtStart)
	d := newDepot(t, map[string][]byte{"good.exe": good, "bad.exe": bad})
	all := machines(t, 5)
	s := newStore(t.Context(), t, all)
	two := intstr.FromInt32(2)
	spec := fleetv1.NodeRolloutSpec{Content: d.content("good.exe"), MaxUnavailable: &two, FailureLimit: 1,
		Health: fleetv1.NodeHealth{Settle: "1ms"}}
	s.settle(spec, rollout.StateComplete)
	for _, m := range all {
		if !m.runs(good) {
			t.Errorf("%s does not run the good kubelet", m.Name)
		}
	}

	spec.Content = d.content("bad.exe")
	status := s.settle(spec, rollout.StateStopped)
	if status.Failed != 1 {
		t.Errorf("%d machines failed, want 1", status.Failed)
	}
	for _, m := range all {
		if !m.runs(good) {
			t.Errorf("%s does not run the good kubelet after the bad one", m.Name)
		}
	}

	spec.Content = d.content("good.exe")
	s.settle(spec, rollout.StateComplete)
	spec.Operation = fleetv1.OperationRollBack
	s.settle(spec, rollout.StateRolledBack)
	for _, m := range all {
		if !m.runs(m.before) {
			t.Errorf("%s does not run its first kubelet after the rollback", m.Name)
		}
	}
}

var errNotYet = errors.New("not yet")

// A server that serves other bytes than the rollout names changes nothing on a machine.
func TestAnotherBinaryIsNotInstalled(t *testing.T) {
	d := newDepot(t, map[string][]byte{"kubelet.exe": kubelet("v1.37.2", "")})
	spec := fleetv1.NodeRolloutSpec{Content: d.content("kubelet.exe"), FailureLimit: 1}
	d.add("kubelet.exe", kubelet("v1.37.9", ""))
	all := machines(t, 2)
	s := newStore(t.Context(), t, all)
	if status := s.settle(spec, rollout.StateStopped); status.Failed != 1 {
		t.Errorf("%d machines failed, want 1", status.Failed)
	}
	for _, m := range all {
		if !m.runs(m.before) {
			t.Errorf("%s runs another kubelet", m.Name)
		}
	}
	if state := s.state("w0"); !strings.Contains(state.Spec.Reason, "the node is unchanged") {
		t.Errorf("the reason is %q", state.Spec.Reason)
	}
}

// A content that may not overwrite what it finds does not count as updated, and its node is not drained.
func TestAProtectedFileIsNotReplaced(t *testing.T) {
	d := newDepot(t, map[string][]byte{"kubelet.exe": kubelet("v1.37.2", "")})
	spec := fleetv1.NodeRolloutSpec{Content: d.content("kubelet.exe"), FailureLimit: 1}
	spec.Content.Provisioners[0].Overwrite = new(bool)
	all := machines(t, 1)
	s := newStore(t.Context(), t, all)
	if status := s.settle(spec, rollout.StateStopped); status.Failed != 1 {
		t.Errorf("%d machines failed, want 1", status.Failed)
	}
	s.expectUnchanged(all[0])
	state := s.state("w0")
	if state.Spec.Released || !strings.Contains(state.Spec.Reason, "overwrite is false") {
		t.Errorf("released: %t; the reason is %q", state.Spec.Released, state.Spec.Reason)
	}
}

// A corrected content does not wait for the fetch of the one before it.
func TestANewerContentEndsAFetch(t *testing.T) {
	asked := make(chan struct{}, 1)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	d := newDepot(t, map[string][]byte{"good.exe": kubelet("v1.37.2", "")})
	s := newStore(t.Context(), t, machines(t, 1))
	spec := fleetv1.NodeRolloutSpec{Content: contentOf(silent.URL+"/kubelet.exe", strings.Repeat("a", 64))}
	for _, a := range s.decide(spec).Actions {
		s.act(spec, a)
	}
	<-asked
	spec.Content = d.content("good.exe")
	err := wait.Condition{Name: "the node to fetch the corrected content", Interval: 10 * time.Millisecond,
		Limit: 30 * time.Second, // less than a download may be silent
		Look: func(context.Context) error {
			for _, a := range s.decide(spec).Actions {
				s.act(spec, a)
			}
			if s.state("w0").Spec.Released {
				return nil
			}
			return errNotYet
		}}.Wait(t.Context())
	if err != nil {
		t.Errorf("%v: %+v", err, s.state("w0"))
	}
}

// A probe of the content's own decides in place of the kubelet's healthz. It fails while the new kubelet runs: a
// probe that fails before the change does not decide.
func TestAProbeOfTheContentDecides(t *testing.T) {
	wanted := kubelet("v1.37.2", "")
	d := newDepot(t, map[string][]byte{"good.exe": wanted})
	all := machines(t, 2)
	var fails atomic.Bool
	fails.Store(true)
	for _, m := range all {
		m.probed(t, func() bool { return !fails.Load() || !m.runs(wanted) })
	}
	s := newStore(t.Context(), t, all)
	spec := fleetv1.NodeRolloutSpec{Content: d.content("good.exe"), FailureLimit: 1, Health: fleetv1.NodeHealth{Settle: "1ms"}}
	spec.Content.Provisioners[0].Health.HTTPGet = probedURL
	if got := s.settle(spec, rollout.StateStopped); got.Failed != 1 {
		t.Errorf("the status is %+v", got)
	}
	reason := s.state("w0").Spec.Reason
	t.Log(reason)
	if !strings.Contains(reason, probedURL) || !all[0].runs(all[0].before) {
		t.Errorf("the reason is %q; w0 runs its first kubelet: %t", reason, all[0].runs(all[0].before))
	}
	fails.Store(false)
	spec.Content.Provisioners[0].Version = "v1.37.2" // another content is another try
	s.settle(spec, rollout.StateComplete)
	for _, m := range all {
		if !m.runs(wanted) {
			t.Errorf("%s does not run the content", m.Name)
		}
	}
}
