package smoke_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/join/smoke"
)

const (
	linuxIP, serviceIP, apiIP = "10.244.0.7", "10.96.12.34", "10.96.0.1"
)

// world is a cluster in memory: it plays the API server, the scheduler, the kubelets and the network.
// Its healthy state can be broken at one place.
type world struct {
	client *fake.Clientset
	now    time.Time // the API server's

	mu        sync.Mutex
	scheduled func(*corev1.Pod)                             // changes a pod that the scheduler has seen
	started   func(*corev1.Pod)                             // changes a pod that its kubelet has started
	network   func(from, url string) (curl int, ok bool)    // decides on a request
	exec      func(pod string) (*cluster.ExecResult, error) // decides on a command
	proxied   string                                        // the pod in whose network a proxy answers for the API server
	logs      error
	created   []string // the objects that were made, as RESOURCE/NAME
	deleted   []string // the namespaces that were deleted, as NAME UID
}

func node(name, system string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name),
		Labels: map[string]string{corev1.LabelOSStable: system}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.NodeInfo.KernelVersion = "10.0.20348.2849"
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.122.220"}}
	for _, c := range change {
		c(n)
	}
	return n
}

func notReady(n *corev1.Node) {
	n.Status.Conditions[0].Status, n.Status.Conditions[0].Reason = corev1.ConditionFalse, "KubeletNotReady"
	n.Status.Conditions[0].Message = "cni plugin not initialized"
}

func tainted(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

// newWorld returns a healthy cluster with these nodes; none: a Linux node and two Windows nodes.
func newWorld(t *testing.T, nodes ...*corev1.Node) *world {
	t.Helper()
	if len(nodes) == 0 {
		nodes = []*corev1.Node{node("cp", "linux", tainted("node-role.kubernetes.io/control-plane")),
			node("win-1", "windows"), node("win-2", "windows", tainted("os"), tainted("team.example.com/only"))}
	}
	w := &world{client: fake.NewClientset(), now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	for _, n := range nodes {
		w.add(t, n)
	}
	w.add(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
		Spec: corev1.ServiceSpec{ClusterIP: apiIP, Ports: []corev1.ServicePort{{Port: 443}}}})
	w.client.PrependReactor("create", "*", w.create)
	w.client.PrependReactor("delete", "namespaces", w.delete)
	w.client.PrependReactor("get", "pods", w.play)
	return w
}

func (w *world) add(t *testing.T, o runtime.Object) {
	t.Helper()
	if err := w.client.Tracker().Add(o); err != nil {
		t.Fatal(err)
	}
}

func (w *world) create(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := action.(clienttesting.CreateAction).GetObject()
	meta := o.(metav1.Object)
	w.created = append(w.created, action.GetResource().Resource+"/"+meta.GetName())
	switch o := o.(type) {
	case *corev1.Namespace:
		o.UID, o.CreationTimestamp = types.UID("uid-of-"+o.Name), metav1.NewTime(w.now)
	case *corev1.Service:
		o.Spec.ClusterIP = serviceIP
	}
	return false, nil, nil // the tracker keeps it
}

func (w *world) delete(action clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := action.(clienttesting.DeleteActionImpl)
	uid := types.UID("")
	if p := d.DeleteOptions.Preconditions; p != nil && p.UID != nil {
		uid = *p.UID
	}
	live, err := w.client.Tracker().Get(action.GetResource(), "", d.Name)
	if err != nil {
		return true, nil, err
	}
	if live.(*corev1.Namespace).UID != uid {
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), d.Name, errors.New("another UID"))
	}
	w.deleted = append(w.deleted, d.Name+" "+string(uid))
	return false, nil, nil
}

// play lets the scheduler and the kubelets work, at each look at a pod.
func (w *world) play(action clienttesting.Action) (bool, runtime.Object, error) {
	get, ok := action.(clienttesting.GetAction)
	if !ok || action.GetSubresource() != "" {
		return false, nil, nil
	}
	live, err := w.client.Tracker().Get(action.GetResource(), action.GetNamespace(), get.GetName())
	if err != nil {
		return true, nil, err
	}
	p := live.(*corev1.Pod).DeepCopy()
	w.mu.Lock()
	defer w.mu.Unlock()
	p.Spec.NodeName, p.Status.PodIP = "cp", linuxIP
	if p.Name != "server" {
		terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		p.Spec.NodeName, p.Status.PodIP = terms[0].MatchFields[0].Values[0], "10.244.1."+p.Name[len("windows-"):]
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agnhost", Image: p.Spec.Containers[0].Image,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	if w.scheduled != nil {
		w.scheduled(p)
	}
	if w.started != nil && p.Spec.NodeName != "" {
		w.started(p)
	}
	return true, p, nil
}

// Exec plays curl in the containers.
func (w *world) Exec(_ context.Context, pod cluster.Pod, _ string, _ int, command ...string) (cluster.ExecResult,
	error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.exec != nil {
		if result, err := w.exec(pod.Name); result != nil || err != nil {
			if result == nil {
				result = &cluster.ExecResult{}
			}
			return *result, err
		}
	}
	program := "curl.exe"
	if pod.Name == "server" {
		program = "curl"
	}
	if command[0] != program {
		return cluster.ExecResult{}, errors.New(command[0] + ": not found")
	}
	if command[1] == "--version" {
		return cluster.ExecResult{Stdout: "curl 8.12.1"}, nil
	}
	url, code := command[len(command)-1], 0
	if w.network != nil {
		if c, ok := w.network(pod.Name, url); ok {
			code = c
		}
	}
	switch {
	case code == 6:
		return cluster.ExecResult{Code: 6, Stdout: "\n000 0.000000", Stderr: "curl: (6) Could not resolve host"}, nil
	case code != 0:
		return cluster.ExecResult{Code: code, Stdout: "\n000 0.000021", Stderr: "curl: sorry"}, nil
	case strings.HasPrefix(url, "https://"+apiIP+":443/") && w.proxied == pod.Name:
		return cluster.ExecResult{Stdout: "blocked by policy\n404 0.000021"}, nil
	case strings.HasPrefix(url, "https://"+apiIP+":443/") && pod.Name == "windows-1":
		return cluster.ExecResult{Stdout: `{"major":"1","gitVersion":"v1.36.3"}` + "\n200 0.000021"}, nil
	case strings.HasPrefix(url, "https://"+apiIP+":443/"):
		return cluster.ExecResult{Stdout: `{"kind":"Status"}` + "\n403 0.000021"}, nil
	}
	i := slices.Index(command, "--data")
	return cluster.ExecResult{Stdout: strings.TrimPrefix(command[i+1], "msg=") + "\n200 0.000021"}, nil
}

// PodLog plays the kubelets' logs.
func (w *world) PodLog(context.Context, cluster.Pod, string, int64, int64) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return "Started HTTP server on port 8080", w.logs
}

func (w *world) cluster() *cluster.Cluster { return cluster.FromClients("https://api", w.client, nil) }

func (w *world) run(ctx context.Context, o smoke.Options) (smoke.Report, error) {
	o.Kubelets = w
	return smoke.Run(ctx, w.cluster(), o)
}

// nothingIsLeft fails the test if the run has left its namespace, or has deleted another one.
func (w *world) nothingIsLeft(t *testing.T, report smoke.Report) {
	t.Helper()
	want := report.Namespace + " uid-of-" + report.Namespace
	if report.Namespace == "" || len(w.deleted) != 1 || w.deleted[0] != want {
		t.Errorf("deleted %q, want %q", w.deleted, want)
	}
}
