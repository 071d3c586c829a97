package preflight_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane/controlplanetest"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// A real control plane as kubeadm makes it, without any object of a pod network.
func TestARealControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	plane := controlplanetest.Start(t, controlplane.Options{})
	c, err := cluster.Open(cluster.Options{Kubeconfig: plane.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	p := newPair(t, simulated.Minimal)
	p.enableContainers(t)
	p.input.Cluster = c
	expect := func(want ...string) {
		t.Helper()
		r := p.run(t)
		var got []string
		for _, problem := range r.Problems {
			got = append(got, problem.Check+" "+string(problem.Severity))
		}
		if !slices.Equal(got, want) || len(r.Skipped) > 0 {
			t.Errorf("found %+v, skipped %+v, want %q", r.Problems, r.Skipped, want)
		}
	}
	expect("pod-network warning", "kube-proxy warning")

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1"}}
	if _, err := p.input.Cluster.Clientset().CoreV1().Nodes().Create(t.Context(), node,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.input.Cluster.Clientset().CoreV1().ConfigMaps("kube-public").Delete(t.Context(), "cluster-info",
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.input.Spec.Version = "1.32.5"
	expect("version-skew error", "cluster-info error", "node-name warning", "pod-network warning", "kube-proxy warning")
	if r := p.run(t); finding.Count(r.Problems, finding.Error) != 2 {
		t.Errorf("%+v", r.Problems)
	}
}
