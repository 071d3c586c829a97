package smoke_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/clustertest"
	"github.com/swdt-dev/swdt/internal/join/smoke"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane/controlplanetest"
	"github.com/swdt-dev/swdt/internal/wait"
)

// register makes a Ready node without a kubelet.
func register(t *testing.T, c *cluster.Cluster, n *corev1.Node) {
	t.Helper()
	n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
		corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("110")}
	n.Status.Capacity = n.Status.Allocatable
	clustertest.MakeNode(t, c, n)
}

// runKubelets stands for the kubelets of all nodes: it reports pods as running, and ends deleted ones.
func runKubelets(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait.For(ctx, 200*time.Millisecond) == nil {
			if err := syncPods(ctx, c); err != nil && ctx.Err() == nil {
				t.Logf("the kubelets' stand-in: %v", err)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func syncPods(ctx context.Context, c *cluster.Cluster) error {
	all, err := c.Clientset().CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range all.Items {
		p, client := &all.Items[i], c.Clientset().CoreV1().Pods(all.Items[i].Namespace)
		now := int64(0)
		switch {
		case p.DeletionTimestamp != nil:
			err = client.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		case p.Spec.NodeName != "" && len(p.Status.ContainerStatuses) == 0:
			ip := fmt.Sprintf("10.244.1.%d", i+1)
			p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agnhost", Image: smoke.DefaultImage,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
			_, err = client.UpdateStatus(ctx, p, metav1.UpdateOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// A real API server accepts all objects, with the Pod Security level restricted; a real scheduler gives
// each pod to its node; and a real controller removes the namespace with all that is in it.
func TestOnARealAPIServer(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{})
	c, err := cluster.Open(cluster.Options{Kubeconfig: plane.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for _, n := range []*corev1.Node{node("lin", "linux", tainted("node-role.kubernetes.io/control-plane")),
		node("win-1", "windows"), node("win-2", "windows", tainted("os"), tainted("team.example.com/only"))} {
		register(t, c, n)
	}
	runKubelets(t, c)

	t.Run("passes", func(t *testing.T) {
		report, err := smoke.Run(ctx, c, smoke.Options{Kubelets: &world{}, Wait: time.Minute})
		if err != nil {
			t.Fatalf("%v\n%+v", err, report)
		}
		if report.Server.Node != "lin" {
			t.Errorf("the server ran on %q, want lin", report.Server.Node)
		}
		awaitEnd(ctx, t, c, report.Namespace)
	})
	t.Run("killed", func(t *testing.T) { realLeftovers(ctx, t, c) })
	t.Run("exec without a kubelet", func(t *testing.T) {
		report, err := smoke.Run(ctx, c, smoke.Options{Nodes: []string{"win-1"}, Wait: time.Minute})
		var failed *smoke.FailedError
		if !errors.As(err, &failed) {
			t.Fatalf("the error is %v, a %T, want a %T", err, err, failed)
		}
		if n := report.Nodes[0]; !strings.HasPrefix(n.Error, "logs-and-exec: ") {
			t.Errorf("the node's error is %q", n.Error)
		} else {
			t.Log(n.Error)
		}
		awaitEnd(ctx, t, c, report.Namespace)
	})
}

// realLeftovers checks that a run removes the namespace of a killed one, and leaves others alone.
func realLeftovers(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	namespaces := c.Clientset().CoreV1().Namespaces()
	for name, limit := range map[string]string{"swdt-smoke-killed": "1ms", "swdt-smoke-running": "1h", "production": "1ms"} {
		_, err := namespaces.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels:      map[string]string{"swdt.dev/smoke-test": name},
			Annotations: map[string]string{"swdt.dev/smoke-limit": limit}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := wait.For(ctx, 1100*time.Millisecond); err != nil { // the API server's times have whole seconds
		t.Fatal(err)
	}
	report, err := smoke.Run(ctx, c, smoke.Options{Nodes: []string{"win-1"}, Kubelets: &world{}, Wait: time.Minute})
	if err != nil || len(report.Leftovers) != 1 || report.Leftovers[0] != "swdt-smoke-killed" {
		t.Errorf("leftovers %v, error %v", report.Leftovers, err)
	}
	awaitEnd(ctx, t, c, "swdt-smoke-killed")
	for _, name := range []string{"swdt-smoke-running", "production"} {
		if n, err := namespaces.Get(ctx, name, metav1.GetOptions{}); err != nil || n.DeletionTimestamp != nil {
			t.Errorf("namespace %s is gone or ends: %v", name, err)
		}
	}
}

// awaitEnd waits until a namespace is gone.
func awaitEnd(ctx context.Context, t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	err := wait.Condition{Name: "the end of namespace " + namespace, Interval: 200 * time.Millisecond,
		Limit: time.Minute, Look: func(ctx context.Context) error {
			n, err := c.Clientset().CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil {
				err = fmt.Errorf("%s: %+v", n.Status.Phase, n.Status.Conditions)
			}
			return err
		}}.Wait(ctx)
	if err != nil {
		t.Error(err)
	}
}
