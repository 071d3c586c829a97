package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/rollout/control"
	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/wait"
)

// memory is an API server in memory with the controller, and with nodes that do only what a test reports for them.
type memory struct {
	t      *testing.T
	server *apiserver.Cluster
	config *rest.Config
	admin  *cluster.Cluster
}

func newMemory(t *testing.T, nodes ...string) *memory {
	t.Helper()
	m := newStill(t, nodes...)
	l := &lab{t: t}
	l.background(func(ctx context.Context) {
		err := control.Run(ctx, m.config, control.Options{Metrics: "0", Probes: "0"})
		if err != nil && ctx.Err() == nil {
			t.Errorf("the controller: %v", err)
		}
	})
	return m
}

// newStill returns the API server without a controller.
func newStill(t *testing.T, nodes ...string) *memory {
	t.Helper()
	server, err := apiserver.Start(apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for _, r := range []apiserver.Resource{{Name: "noderollouts", Kind: "NodeRollout"}, {Name: "nodestates", Kind: "NodeState"}} {
		r.Group, r.Version, r.Status = fleetv1.GroupVersion().Group, fleetv1.GroupVersion().Version, true
		server.AddResource(r)
	}
	text, err := server.Kubeconfig(server.Server())
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	m := &memory{t: t, server: server, config: config}
	if m.admin, err = cluster.FromConfig(config); err != nil {
		t.Fatal(err)
	}
	for _, name := range nodes {
		m.node(name)
	}
	return m
}

// node makes a Windows node that is Ready.
func (m *memory) node(name string) {
	m.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
		Labels: map[string]string{"kubernetes.io/os": "windows", "pool": "p"}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}}
	nodes := m.admin.Clientset().CoreV1().Nodes()
	if _, err := nodes.Create(m.t.Context(), n, metav1.CreateOptions{}); err != nil {
		m.t.Fatal(err)
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": n.Status.Conditions}})
	if err != nil {
		m.t.Fatal(err)
	}
	_, err = nodes.Patch(m.t.Context(), name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	if err != nil {
		m.t.Fatal(err)
	}
}

// pod makes a pod on a node. One without a controller would be lost by a drain.
func (m *memory) pod(name, node string, controlled bool) {
	m.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "none"}}}}
	if controlled {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs",
			Controller: &controlled}}
	}
	if _, err := m.admin.Clientset().CoreV1().Pods("default").Create(m.t.Context(), p, metav1.CreateOptions{}); err != nil {
		m.t.Fatal(err)
	}
}

// refuseEvictions makes the API server refuse the eviction of the pod with this answer.
func (m *memory) refuseEvictions(pod string, status int) {
	m.server.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		if r.Subresource == "eviction" && r.Name == pod {
			return apiserver.Verdict{Status: status, Message: "a webhook denied the request"}
		}
		return apiserver.Verdict{}
	})
}

func (m *memory) rollout(name string, change func(*fleetv1.NodeRolloutSpec)) {
	m.t.Helper()
	two := intstr.FromInt32(2)
	spec := fleetv1.NodeRolloutSpec{MaxUnavailable: &two, FailureLimit: 2}
	spec.Content.Provisioners = []fleetv1.Provisioner{{Name: "kubelet", SourceURL: "https://a.example/kubelet.exe",
		Destination: `C:\k\kubelet.exe`, SHA256: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}
	change(&spec)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&fleetv1.NodeRollout{
		TypeMeta:   metav1.TypeMeta{APIVersion: fleetv1.GroupVersion().String(), Kind: "NodeRollout"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	})
	if err != nil {
		m.t.Fatal(err)
	}
	_, err = m.admin.Dynamic().Resource(fleetv1.RolloutResource()).Create(m.t.Context(),
		&unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *memory) deleteRollout(name string) {
	m.t.Helper()
	err := m.admin.Dynamic().Resource(fleetv1.RolloutResource()).Delete(m.t.Context(), name, metav1.DeleteOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
}

// report writes the status that the program on a node writes for its present order.
func (m *memory) report(node string, phase fleetv1.Phase) {
	m.t.Helper()
	s := m.state(node)
	patch, err := json.Marshal(map[string]any{"status": fleetv1.NodeStateStatus{Hash: s.Spec.Hash, Action: s.Spec.Action,
		Phase: phase, Since: metav1.NewMicroTime(time.Now())}})
	if err != nil {
		m.t.Fatal(err)
	}
	_, err = m.admin.Dynamic().Resource(fleetv1.StateResource()).Patch(m.t.Context(), node, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if err != nil {
		m.t.Fatal(err)
	}
}

// reconciler returns a controller with this clock, which decides only when a test calls it.
func (m *memory) reconciler(now func() time.Time) reconcile.Reconciler {
	m.t.Helper()
	r, err := control.NewReconciler(m.config, now)
	if err != nil {
		m.t.Fatal(err)
	}
	return r
}

// reconcile makes one decision about the rollout.
func (m *memory) reconcile(rollout string, r reconcile.Reconciler) {
	m.t.Helper()
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: rollout}}
	if _, err := r.Reconcile(m.t.Context(), request); err != nil {
		m.t.Fatal(err)
	}
}

// state returns the NodeState of a node; the zero value if there is none.
func (m *memory) state(node string) (s fleetv1.NodeState) {
	u, err := m.admin.Dynamic().Resource(fleetv1.StateResource()).Get(m.t.Context(), node, metav1.GetOptions{})
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s)
	}
	if err != nil {
		return fleetv1.NodeState{}
	}
	return s
}

// deleteNode deletes a node with its NodeState, as the garbage collector does.
func (m *memory) deleteNode(name string) {
	m.t.Helper()
	err := errors.Join(
		m.admin.Dynamic().Resource(fleetv1.StateResource()).Delete(m.t.Context(), name, metav1.DeleteOptions{}),
		m.admin.Clientset().CoreV1().Nodes().Delete(m.t.Context(), name, metav1.DeleteOptions{}))
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *memory) cordoned(node string) bool {
	n, err := m.admin.Clientset().CoreV1().Nodes().Get(m.t.Context(), node, metav1.GetOptions{})
	return err == nil && n.Spec.Unschedulable
}

// await waits until the objects are as wanted.
func (m *memory) await(what string, wanted func() bool) {
	m.t.Helper()
	err := wait.Condition{Name: what, Interval: 10 * time.Millisecond, Limit: 2 * time.Minute,
		Look: func(context.Context) error {
			if !wanted() {
				return errNotYet
			}
			return nil
		}}.Wait(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *memory) awaitClaim(node, rollout string) {
	m.t.Helper()
	m.await(rollout+" to claim "+node, func() bool { return m.state(node).Spec.Rollout == rollout })
}

func drained(timeout fleetv1.Duration) func(*fleetv1.NodeRolloutSpec) {
	return func(s *fleetv1.NodeRolloutSpec) { s.Drain = &fleetv1.Drain{Timeout: timeout} }
}

// The nodes of a rollout that is deleted go to the next rollout that chooses them, without any other event.
func TestADeletedRolloutLeavesItsNodesToTheNext(t *testing.T) {
	m := newMemory(t, "w0")
	m.rollout("a", func(s *fleetv1.NodeRolloutSpec) { s.Paused = true })
	m.rollout("b", func(*fleetv1.NodeRolloutSpec) {})
	m.await("the controller to see b", func() bool { return m.status("b").State != "" })
	if s := m.status("b"); s.Nodes != 0 {
		t.Fatalf("the younger rollout has the node: %+v", s)
	}
	m.deleteRollout("a")
	m.awaitClaim("w0", "b")
}

func (m *memory) status(rollout string) fleetv1.NodeRolloutStatus {
	var r fleetv1.NodeRollout
	u, err := m.admin.Dynamic().Resource(fleetv1.RolloutResource()).Get(m.t.Context(), rollout, metav1.GetOptions{})
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return r.Status
}

// A rollout is judged anew if it has only the name and the generation of one that was deleted.
func TestARolloutOfTheSameNameIsJudgedAnew(t *testing.T) {
	m := newMemory(t, "w0")
	m.rollout("r", func(s *fleetv1.NodeRolloutSpec) {
		s.Window = &fleetv1.Window{Start: "00:00", End: "00:00", TimeZone: "Europe/Nowhere"}
	})
	m.await("the rollout to be Stopped", func() bool { return m.status("r").State == rollout.StateStopped })
	m.deleteRollout("r")
	m.rollout("r", func(*fleetv1.NodeRolloutSpec) {})
	m.awaitClaim("w0", "r")
}

// A pod whose eviction the API server refuses for good costs its own node the drain's time, and no other node anything.
func TestAnErrorOfOneNodeKeepsNoOther(t *testing.T) {
	m := newMemory(t, "w0", "w1")
	m.pod("kept", "w0", true)
	m.refuseEvictions("kept", 403)
	m.rollout("r", drained("2s"))
	for _, name := range []string{"w0", "w1"} {
		m.awaitClaim(name, "r")
	}
	m.report("w0", fleetv1.PhaseFetched)
	m.await("w0 to be cordoned", func() bool { return m.cordoned("w0") })
	m.report("w1", fleetv1.PhaseFetched)
	m.await("w1 to be released", func() bool { return m.state("w1").Spec.Released })
	m.await("w0 to fail", func() bool { return m.state("w0").Spec.Verdict == fleetv1.VerdictFailed })
	if m.cordoned("w0") {
		t.Error("w0 is left cordoned")
	}
}

// Rules of a spec that the schema cannot express stop the rollout before the first node, and the message names the field.
func TestWrongFieldsTouchNoNode(t *testing.T) {
	provisioner := func(h fleetv1.Health) func(*fleetv1.NodeRolloutSpec) {
		return func(s *fleetv1.NodeRolloutSpec) { s.Content.Provisioners[0].Health = &h }
	}
	long := fleetv1.Duration("9999999h")
	for name, test := range map[string]struct {
		change  func(*fleetv1.NodeRolloutSpec)
		message string
	}{
		"no provisioners": {func(s *fleetv1.NodeRolloutSpec) { s.Content = fleetv1.Content{Provisioners: []fleetv1.Provisioner{}} },
			"spec.content: it has nothing to do; "},
		"an empty setup": {func(s *fleetv1.NodeRolloutSpec) { s.Content = fleetv1.Content{Setup: &fleetv1.Setup{}} },
			"spec.content: it has nothing to do; "},
		"a setup of empty lists": {func(s *fleetv1.NodeRolloutSpec) {
			s.Content = fleetv1.Content{Setup: &fleetv1.Setup{Features: []string{}}}
		}, "spec.content: it has nothing to do; "},
		"a long settle time":  {provisioner(fleetv1.Health{Settle: &long}), "spec.content.provisioners[0].health.settle: "},
		"a long timeout":      {provisioner(fleetv1.Health{Timeout: &long}), "spec.content.provisioners[0].health.timeout: "},
		"a long stop timeout": {provisioner(fleetv1.Health{StopTimeout: &long}), "spec.content.provisioners[0].health.stopTimeout: "},
	} {
		t.Run(name, func(t *testing.T) {
			m := newStill(t, "w0")
			m.rollout("r", test.change)
			m.reconcile("r", m.reconciler(time.Now))
			if s := m.status("r"); s.State != rollout.StateStopped || !strings.HasPrefix(s.Message, test.message) {
				t.Errorf("the status is %+v", s)
			}
			if s := m.state("w0").Spec; s.Rollout != "" {
				t.Errorf("w0 is claimed: %+v", s)
			}
		})
	}
}

// However many events make decisions, a drain that waits for pods requests their eviction once in five seconds, and
// costs no other request in between.
func TestEventsDoNotRepeatDrains(t *testing.T) {
	m := newStill(t, "w0", "w1")
	var made atomic.Int32 // requests of drains
	m.server.OnRequest(func(r apiserver.Request) apiserver.Verdict {
		if r.Resource == "pods" || r.Resource == "nodes" && r.Verb != "list" {
			made.Add(1)
		}
		if r.Subresource == "eviction" {
			return apiserver.Verdict{Status: 429, Message: "a budget keeps the pod"}
		}
		return apiserver.Verdict{}
	})
	now := time.Now()
	r := m.reconciler(func() time.Time { return now })
	m.rollout("r", drained("1h"))
	for _, name := range []string{"w0", "w1"} {
		m.pod("on-"+name, name, true)
	}
	made.Store(0)
	m.reconcile("r", r)
	m.reconcile("r", r)
	if all := made.Load(); all != 0 {
		t.Errorf("%d requests of drains before the nodes have the binaries", all)
	}
	for _, name := range []string{"w0", "w1"} {
		m.report(name, fleetv1.PhaseFetched)
	}
	m.reconcile("r", r)
	round := made.Load()
	for range 20 {
		m.reconcile("r", r)
		now = now.Add(100 * time.Millisecond)
	}
	if all := made.Load(); round == 0 || all != round {
		t.Errorf("a round costs %d requests; it and 20 further decisions within 2 s cost %d", round, all)
	}
	now = now.Add(3 * time.Second)
	m.reconcile("r", r)
	if all := made.Load(); all <= round || all > 2*round {
		t.Errorf("a round costs %d requests; two rounds cost %d", round, all)
	}
}

// Pods that have left at the end of the drain's time have left in time, also if that is before the next round.
func TestPodsThatHaveLeftAtTheEndOfADrain(t *testing.T) {
	m := newStill(t, "w0")
	now := time.Now()
	r := m.reconciler(func() time.Time { return now })
	m.rollout("r", drained("1s"))
	m.reconcile("r", r)
	m.pod("leaves", "w0", true)
	m.report("w0", fleetv1.PhaseFetched)
	m.reconcile("r", r)
	if s := m.state("w0").Spec; s.Released || s.Verdict != "" {
		t.Fatalf("after the first round, the order is %+v", s)
	}
	now = now.Add(time.Minute)
	m.reconcile("r", r)
	if s := m.state("w0").Spec; !s.Released || s.Verdict != "" {
		t.Errorf("at the end of the drain, the order is %+v", s)
	}
}

// A cluster that replaces each failed node by a new one of the same name does not bring a bad build to more nodes.
func TestFailedNodesThatAreReplacedCount(t *testing.T) {
	m := newMemory(t, "w0")
	m.rollout("r", func(*fleetv1.NodeRolloutSpec) {})
	for failed := 1; failed <= 2; failed++ {
		m.awaitClaim("w0", "r")
		m.report("w0", fleetv1.PhaseFetched)
		m.await("w0 to be released", func() bool { return m.state("w0").Spec.Released })
		m.report("w0", fleetv1.PhaseRolledBack)
		m.await("the failure to be listed", func() bool { return len(m.status("r").FailedNodes) == failed })
		m.deleteNode("w0")
		m.node("w0")
	}
	m.await("the rollout to stop without a failed node", func() bool {
		s := m.status("r")
		return s.State == rollout.StateStopped && s.Failed == 0
	})
	m.node("w1")
	m.await("the rollout to see w1", func() bool { return m.status("r").Nodes == 2 })
	if s := m.status("r"); len(s.FailedNodes) != 2 || m.state("w0").Spec.Rollout+m.state("w1").Spec.Rollout != "" {
		t.Errorf("the status is %+v; w0 is %+v, w1 is %+v", s, m.state("w0").Spec, m.state("w1").Spec)
	}
}

// A drain that has cordoned the node, and then finds a pod that it would lose, uncordons the node.
func TestARefusedDrainLeavesNoCordon(t *testing.T) {
	m := newMemory(t, "w0")
	m.pod("stays", "w0", true)
	m.refuseEvictions("stays", 429)
	m.rollout("r", drained("1m"))
	m.awaitClaim("w0", "r")
	m.report("w0", fleetv1.PhaseFetched)
	m.await("w0 to be cordoned", func() bool { return m.cordoned("w0") })
	m.pod("bare", "w0", false)
	m.await("w0 to fail", func() bool { return m.state("w0").Spec.Verdict == fleetv1.VerdictFailed })
	if m.cordoned("w0") {
		t.Error("w0 is left cordoned")
	}
}

// A node that refuses its order after its drain is uncordoned and has not failed; it gets the next order.
func TestARefusedOrderLeavesNoCordon(t *testing.T) {
	m := newStill(t, "w0")
	now := time.Now()
	r := m.reconciler(func() time.Time { return now })
	decide := func(later time.Duration) fleetv1.NodeRolloutStatus {
		t.Helper()
		now = now.Add(later)
		m.reconcile("r", r)
		return m.status("r")
	}
	m.rollout("r", drained("1m"))
	decide(0)
	m.report("w0", fleetv1.PhaseFetched)
	decide(0)
	if s := m.state("w0").Spec; !s.Released || !m.cordoned("w0") {
		t.Fatalf("after the drain: %+v; it is cordoned: %t", s, m.cordoned("w0"))
	}
	m.report("w0", fleetv1.PhaseRefused)
	if s := decide(time.Second); s.Working != 1 || s.State != rollout.StateWaiting || !strings.Contains(s.Message, "w0 refuses") {
		t.Errorf("a second later, the status is %+v", s)
	}
	decide(time.Minute)
	if s := m.state("w0").Spec; s.Rollout != "" || s.Verdict != "" || m.cordoned("w0") {
		t.Errorf("a minute later: %+v; it is cordoned: %t", s, m.cordoned("w0"))
	}
	status := decide(0)
	if s := m.state("w0").Spec; s.Rollout != "r" || s.Released || status.Failed > 0 || len(status.FailedNodes) > 0 {
		t.Errorf("the next order is %+v, the status %+v", s, status)
	}
}

// A node that its rollout no longer chooses is let go before its release, and brought to its end after it.
func TestANodeThatLeavesItsRollout(t *testing.T) {
	m := newMemory(t, "w0", "w1")
	m.pod("stays", "w0", true)
	m.refuseEvictions("stays", 429)
	m.rollout("r", func(s *fleetv1.NodeRolloutSpec) {
		drained("1m")(s)
		s.Selector.MatchLabels = map[string]string{"pool": "p"}
	})
	for _, name := range []string{"w0", "w1"} {
		m.awaitClaim(name, "r")
		m.report(name, fleetv1.PhaseFetched)
	}
	m.await("w0 to be cordoned", func() bool { return m.cordoned("w0") })
	m.await("w1 to be released", func() bool { return m.state("w1").Spec.Released })
	for _, name := range []string{"w0", "w1"} {
		_, err := m.admin.Clientset().CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"pool":null}}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	m.await("w0 to be let go", func() bool { return m.state("w0").Spec.Rollout == "" })
	m.report("w1", fleetv1.PhaseRolledBack)
	m.await("w1 to fail", func() bool { return m.state("w1").Spec.Verdict == fleetv1.VerdictFailed })
	if m.cordoned("w0") || m.cordoned("w1") {
		t.Error("a node is left cordoned")
	}
}
