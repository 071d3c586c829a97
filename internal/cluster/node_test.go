package cluster_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktesting "k8s.io/client-go/testing"

	"github.com/swdt-dev/swdt/internal/cluster"
)

func ready(status corev1.ConditionStatus, reason, message string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
			{Type: corev1.NodeReady, Status: status, Reason: reason, Message: message},
		}
	}
}

func allocatable(cpu, memory string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
}

func lease(name string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: name},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}},
	}
}

func TestNode(t *testing.T) {
	renewed := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c, _ := fakeCluster(lease("win-1", renewed), node("win-1", ready(corev1.ConditionTrue, "KubeletReady", "ok"),
		allocatable("3500m", "2Gi"), func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{{Key: "os", Value: "windows", Effect: "NoSchedule"}}
			n.Labels = map[string]string{"a": "b"}
			n.Status.Addresses = []corev1.NodeAddress{{Type: "InternalIP", Address: "10.0.0.7"}}
			n.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.36.3",
				OSImage:       "Windows Server 2022 Datacenter",
				KernelVersion: "10.0.20348.2849", ContainerRuntimeVersion: "containerd://1.7.12",
				OperatingSystem: "windows"}
		}))
	n, err := c.Node(context.Background(), "win-1")
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case !n.Exists:
		t.Error("n.Exists = false, want true")
	case !n.Ready:
		t.Error("n.Ready = false, want true")
	case !n.Cordoned:
		t.Error("n.Cordoned = false, want true")
	case !n.LeaseRenewed.Equal(renewed):
		t.Errorf("n.LeaseRenewed.Equal(renewed) is wrong; Node = %+v", n)
	case n.KubeletVersion != "v1.36.3":
		t.Errorf("n.KubeletVersion = %q, want %q", n.KubeletVersion, "v1.36.3")
	case n.OS != "windows":
		t.Errorf("n.OS = %q, want %q", n.OS, "windows")
	case n.OSImage != "Windows Server 2022 Datacenter":
		t.Errorf("n.OSImage = %q, want %q", n.OSImage, "Windows Server 2022 Datacenter")
	case n.KernelVersion != "10.0.20348.2849":
		t.Errorf("n.KernelVersion = %q, want %q", n.KernelVersion, "10.0.20348.2849")
	case n.Runtime != "containerd://1.7.12":
		t.Errorf("n.Runtime = %q, want %q", n.Runtime, "containerd://1.7.12")
	case n.Allocatable != (cluster.Resources{MilliCPU: 3500, MemoryBytes: 2 << 30}):
		t.Errorf("n.Allocatable = %v, want %v", n.Allocatable,
			(cluster.Resources{MilliCPU: 3500, MemoryBytes: 2 << 30}))
	case n.Labels["a"] != "b":
		t.Errorf("n.Labels[\"a\"] = %q, want %q", n.Labels["a"], "b")
	case n.Taints[0].Value != "windows":
		t.Errorf("n.Taints[0].Value = %q, want %q", n.Taints[0].Value, "windows")
	case n.Addresses[0].Address != "10.0.0.7":
		t.Errorf("n.Addresses[0].Address = %q, want %q; Node = %+v", n.Addresses[0].Address, "10.0.0.7", n)
	}
	none, err := c.Node(context.Background(), "win-2")
	switch {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case none.Exists:
		t.Error("none.Exists = true, want false")
	case none.State() != "not registered":
		t.Errorf("none.State() is wrong; a node that is not there: %+v, %v", none, err)
	}
}

func TestStateOfANode(t *testing.T) {
	for want, n := range map[string]*corev1.Node{
		"registered, but its kubelet has not reported yet": node("n"),
		"Ready": node("n", ready(corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")),
		"NotReady (KubeletNotReady): cni plugin not initialized; cordoned": node("n",
			ready(corev1.ConditionFalse, "KubeletNotReady", "cni plugin not initialized"),
			func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		"Ready; DiskPressure (KubeletHasDiskPressure): low": node("n", ready(corev1.ConditionTrue, "", ""),
			func(n *corev1.Node) {
				n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure,
					Status: corev1.ConditionTrue, Reason: "KubeletHasDiskPressure", Message: "low"})
			}),
	} {
		c, _ := fakeCluster(n)
		got, err := c.Node(context.Background(), "n")
		if err != nil || got.State() != want {
			t.Errorf("state %q, %v; wanted %q", got.State(), err, want)
		}
	}
}

// A node appears step by step, and each step is reported once.
func TestAwaitNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := fakeCluster()
		restarted := time.Now()
		nodes, leases := schema.GroupVersionResource{Version: "v1", Resource: "nodes"},
			schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
		do := func(after time.Duration, change func() error) {
			time.AfterFunc(after, func() {
				if err := change(); err != nil {
					t.Error(err)
				}
			})
		}
		labelled := func(n *corev1.Node) { n.Labels = map[string]string{"role": "burn"} }
		tainted := func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "os", Value: "windows", Effect: "NoSchedule"}}
		}
		do(2500*time.Millisecond, func() error { return client.Tracker().Create(nodes, node("win-1"), "") })
		do(4500*time.Millisecond, func() error {
			return client.Tracker().Update(nodes,
				node("win-1", ready(corev1.ConditionFalse, "KubeletNotReady", "no CNI")), "")
		})
		do(6500*time.Millisecond, func() error {
			return client.Tracker().Update(nodes, node("win-1", ready(corev1.ConditionTrue, "", ""),
				allocatable("2", "1Gi"), labelled), "")
		})
		do(7500*time.Millisecond,
			func() error { return client.Tracker().Create(leases, lease("win-1", restarted), "kube-node-lease") })
		do(8500*time.Millisecond, func() error {
			return client.Tracker().Update(nodes, node("win-1", ready(corev1.ConditionTrue, "", ""),
				allocatable("2", "1Gi"), labelled, tainted), "")
		})
		do(10500*time.Millisecond, func() error {
			return client.Tracker().Update(leases, lease("win-1", restarted.Add(10*time.Second)), "kube-node-lease")
		})
		var states []string
		n, err := c.AwaitNode(t.Context(), "win-1", cluster.Wanted{
			Registered: true, Ready: true, Allocatable: true, LeaseAfter: restarted,
			Labels: map[string]string{"role": "burn"},
			Taints: []corev1.Taint{{Key: "os", Value: "windows", Effect: "NoSchedule"}},
		}, func(state string) { states = append(states, state) })
		if err != nil || !n.Ready {
			t.Fatalf("AwaitNode = %+v, %v", n, err)
		}
		since := "a lease renewed after " + restarted.UTC().Format(time.RFC3339)
		want := []string{
			"not registered",
			"registered, but its kubelet has not reported yet; waiting for Ready, " + since +
				", allocatable CPU and memory, label role=burn, taint os=windows:NoSchedule",
			"NotReady (KubeletNotReady): no CNI; waiting for Ready, " + since +
				", allocatable CPU and memory, label role=burn, taint os=windows:NoSchedule",
			"Ready; waiting for " + since + ", taint os=windows:NoSchedule",
			"Ready; waiting for " + since,
		}
		if !slices.Equal(states, want) {
			t.Errorf("got states\n%s\nwant\n%s", strings.Join(states, "\n"), strings.Join(want, "\n"))
		}
		if waited := time.Since(restarted); waited != 11*time.Second {
			t.Errorf("waited %s", waited)
		}
	})
}

func TestAwaitNodeInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := fakeCluster(node("win-1", ready(corev1.ConditionFalse, "KubeletNotReady", "no CNI")))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		// The API server is away for the last ten seconds.
		began := time.Now()
		client.PrependReactor("get", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
			if time.Since(began) > 10*time.Second {
				return true, nil, apierrors.NewServiceUnavailable("away")
			}
			return false, nil, nil
		})
		_, err := c.AwaitNode(ctx, "win-1", cluster.Wanted{Ready: true, Allocatable: true}, func(string) {})
		var vain *cluster.NodeWaitError
		if !errors.As(err, &vain) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("AwaitNode = %v, wanted a NodeWaitError", err)
		}
		var away *cluster.UnreachableError
		switch {
		case !slices.Equal(vain.Missing, []string{"Ready", "allocatable CPU and memory"}):
			t.Errorf("vain.Missing = %v, want %v", vain.Missing, []string{"Ready", "allocatable CPU and memory"})
		case vain.Last.State() != "NotReady (KubeletNotReady): no CNI":
			t.Errorf("vain.Last.State() is wrong; error %+v", vain)
		case !errors.As(vain.Asked, &away):
			t.Errorf("error = %v (%T), want a %T", vain.Asked, vain.Asked, away)
		case vain.After != 20*time.Second:
			t.Errorf("vain.After = %v, want %v; error %+v", vain.After, 20*time.Second, vain)
		}
	})
}

func TestAwaitNodeThatWeMayNotSee(t *testing.T) {
	c, client := fakeCluster()
	client.PrependReactor("get", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "win-1", errors.New("no"))
	})
	_, err := c.AwaitNode(context.Background(), "win-1", cluster.Wanted{Ready: true}, func(string) {})
	var forbidden *cluster.ForbiddenError
	if !errors.As(err, &forbidden) || forbidden.Missing.String() != "get nodes/win-1" {
		t.Errorf("AwaitNode = %v, wanted a ForbiddenError at once", err)
	}
}

func TestDeleteNode(t *testing.T) {
	c, _ := fakeCluster(node("win-1"))
	for _, want := range []bool{true, false} {
		if was, err := c.DeleteNode(context.Background(), "win-1"); was != want || err != nil {
			t.Errorf("DeleteNode = %v, %v; wanted %v", was, err, want)
		}
	}
}

func TestKubeletMaySet(t *testing.T) {
	for label, want := range map[string]bool{
		"team": true, "example.com/team": true, "kubernetes.io/os": true, "node.kubernetes.io/windows-build": true,
		"kubelet.kubernetes.io/x":     true,
		"topology.kubernetes.io/zone": true, "foo.node.kubernetes.io/x": true, "mykubernetes.io/x": true,
		"node-role.kubernetes.io/worker": false, "node-restriction.kubernetes.io/x": false,
		"kubernetes.io/role": false, "foo.k8s.io/x": false, "k8s.io/x": false,
	} {
		if got := cluster.KubeletMaySet(label); got != want {
			t.Errorf("KubeletMaySet(%s) = %v", label, got)
		}
	}
}

func TestSetLabelsAndTaints(t *testing.T) {
	windows := corev1.Taint{Key: "os", Value: "windows", Effect: corev1.TaintEffectNoSchedule}
	theirs := corev1.Taint{Key: "os", Value: "theirs", Effect: corev1.TaintEffectNoExecute}
	c, client := fakeCluster(node("win-1", func(n *corev1.Node) {
		n.Labels = map[string]string{"theirs": "1", "ours": "old"}
		n.Spec.Taints = []corev1.Taint{theirs, {Key: "os", Value: "old", Effect: corev1.TaintEffectNoSchedule}}
	}))
	ctx := context.Background()
	for _, want := range []bool{true, false} {
		if changed, err := c.SetLabels(ctx, "win-1", map[string]string{"ours": "new",
			"node-role.kubernetes.io/worker": ""}); changed != want || err != nil {
			t.Errorf("SetLabels = %v, %v; wanted %v", changed, err, want)
		}
		if changed, err := c.SetTaints(ctx, "win-1", []corev1.Taint{windows}); changed != want || err != nil {
			t.Errorf("SetTaints = %v, %v; wanted %v", changed, err, want)
		}
	}
	n, err := client.CoreV1().Nodes().Get(ctx, "win-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role, ok := n.Labels["node-role.kubernetes.io/worker"]
	switch {
	case n.Labels["theirs"] != "1":
		t.Errorf("n.Labels[\"theirs\"] = %q, want %q", n.Labels["theirs"], "1")
	case n.Labels["ours"] != "new":
		t.Errorf("n.Labels[\"ours\"] = %q, want %q", n.Labels["ours"], "new")
	case !ok:
		t.Error("ok = false, want true")
	case role != "":
		t.Errorf("role = %q, want %q; labels %v", role, "", n.Labels)
	}
	if !slices.Equal(n.Spec.Taints, []corev1.Taint{theirs, windows}) {
		t.Errorf("taints %v", n.Spec.Taints)
	}
}

func TestAChangeThatMeetsAnother(t *testing.T) {
	c, client := fakeCluster(node("win-1"))
	conflicts := 2
	client.PrependReactor("patch", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
		if conflicts == 0 {
			return false, nil, nil
		}
		conflicts--
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "win-1", errors.New("changed"))
	})
	switch changed, err := c.SetLabels(context.Background(), "win-1", map[string]string{"a": "b"}); {
	case !changed:
		t.Error("changed = false, want true")
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case conflicts != 0:
		t.Errorf("conflicts = %v, want 0; SetLabels = %v, %v, with %d conflicts to come", conflicts, changed,
			err, conflicts)
	}
}
