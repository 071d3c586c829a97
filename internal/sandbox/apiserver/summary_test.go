package apiserver_test

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// A node's summary lists the pods that run there; their counters advance with the cluster's clock.
func TestANodesSummary(t *testing.T) {
	f := start(t, apiserver.Options{})
	f.makeNode(t, "win1")
	f.makePod(t, "half", "win1", corev1.PodRunning, nil, "1")
	f.makePod(t, "told", "win1", corev1.PodRunning, map[string]string{"simulated.swdt.dev/burns": "0.3",
		"simulated.swdt.dev/reports": "0"}, "")
	f.makePod(t, "waits", "win1", corev1.PodPending, nil, "")
	f.makePod(t, "elsewhere", "win2", corev1.PodRunning, nil, "")

	first := f.summary(t, "win1")
	f.SetClock(10 * time.Minute)
	second := f.summary(t, "win1")
	switch {
	case len(first.Pods) != 2:
		t.Fatalf("first.Pods has %d elements, want 2: %v", len(first.Pods), first.Pods)
	case first.Node.NodeName != "win1":
		t.Fatalf("first.Node.NodeName is %q, want %q", first.Node.NodeName, "win1")
	}
	for i, want := range []struct {
		name           string
		used, reported float64
	}{{"half", 0.5, 0.5}, {"told", 0.3, 0}} {
		before, after := first.Pods[i].Containers[0].CPU, second.Pods[i].Containers[0].CPU
		rate := float64(*after.UsageCoreNanoSeconds-*before.UsageCoreNanoSeconds) / float64(
			after.Time.Sub(before.Time.Time))
		switch {
		case first.Pods[i].PodRef.Name != want.name:
			t.Errorf("%s: first.Pods[i].PodRef.Name is %v, want %v", first.Pods[i].PodRef.Name,
				first.Pods[i].PodRef.Name, want.name)
		case rate < want.used*0.97:
			t.Errorf("%s: rate is %v, want at least %v", first.Pods[i].PodRef.Name, rate, want.used*0.97)
		case rate > want.used*1.03:
			t.Errorf("%s: rate is %v, want at most %v", first.Pods[i].PodRef.Name, rate, want.used*1.03)
		case float64(*after.UsageNanoCores)/1e9 != want.reported:
			t.Errorf("%s: float64(*after.UsageNanoCores) / 1e9 is %v, want %v", first.Pods[i].PodRef.Name,
				float64(*after.UsageNanoCores)/1e9, want.reported)
		}
	}

	_, err := f.client.CoreV1().RESTClient().Get().Resource("nodes").Name("none").SubResource("proxy").Suffix(
		"stats/summary").DoRaw(t.Context())
	if !apierrors.IsNotFound(err) {
		t.Errorf("a node that is not there: %v", err)
	}
}

func (f *fixture) summary(t *testing.T, node string) statsv1alpha1.Summary {
	t.Helper()
	body, err := f.client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix(
		"stats/summary").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var summary statsv1alpha1.Summary
	if err := json.Unmarshal(body, &summary); err != nil {
		t.Fatal(err)
	}
	return summary
}

func (f *fixture) makeNode(t *testing.T, name string) {
	t.Helper()
	if _, err := f.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) makePod(t *testing.T, name, node string, phase corev1.PodPhase,
	labels map[string]string, limit string) {
	t.Helper()
	container := corev1.Container{Name: "burn", Image: "example"}
	if limit != "" {
		container.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)}
	}
	pod, err := f.client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{container}},
	}, metav1.CreateOptions{})
	if err == nil {
		pod.Status.Phase = phase
		_, err = f.client.CoreV1().Pods("default").UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
