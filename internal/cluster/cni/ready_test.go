package cni_test

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
)

// operatorPod returns the pod of Calico's operator.
func operatorPod(status corev1.PodStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "operator-1", Namespace: cni.OperatorNamespace,
		Labels: map[string]string{"name": "tigera-operator"}}, Status: status}
}

func TestTheReasonWhyTheOperatorDoesNotRun(t *testing.T) {
	labels := map[string]string{"name": "tigera-operator"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "tigera-operator", Namespace: cni.OperatorNamespace},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable,
			Status: "False", Reason: "MinimumReplicasUnavailable", Message: "no pod"}}},
	}
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "operator",
			Image: "quay.io/tigera/operator:v1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: reason, Message: message}}}}}
	}
	ended := corev1.PodStatus{Phase: corev1.PodRunning, InitContainerStatuses: []corev1.ContainerStatus{{Name: "init",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Message: "no rights"}}}}}
	for name, test := range map[string]struct {
		objects []runtime.Object
		want    []string
	}{
		"none":   {nil, []string{"does not exist"}},
		"no pod": {[]runtime.Object{deployment}, []string{"MinimumReplicasUnavailable: no pod"}},
		"no image": {[]runtime.Object{deployment, operatorPod(waiting("ErrImagePull", "not found"))},
			[]string{"operator-1", "quay.io/tigera/operator:v1: ErrImagePull: not found", "does the node reach the registry"}},
		"it crashes": {[]runtime.Object{deployment, operatorPod(waiting("CrashLoopBackOff", "back-off 10s"))},
			[]string{"container operator: CrashLoopBackOff: back-off 10s"}},
		"it ended": {[]runtime.Object{deployment, operatorPod(ended)},
			[]string{"container init ended with exit code 2: no rights"}},
		"no node": {[]runtime.Object{deployment, operatorPod(corev1.PodStatus{Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Message: "0/1 nodes are available"}}})}, []string{"is not scheduled: 0/1 nodes are available"}},
	} {
		client := fake.NewClientset(test.objects...)
		server := cni.NewServer(cluster.FromClients("https://cluster.example", client, nil))
		err := server.OperatorAvailable().Look(t.Context())
		var not *cni.NotReadyError
		if !errors.As(err, &not) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v lacks %q", name, err, want)
			}
		}
	}
}

func TestOnWindowsNamesTheNodeWithoutAPod(t *testing.T) {
	labels := map[string]string{"app": "p"}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n"},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	ready := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p-1", Namespace: "n", Labels: labels},
		Spec:   corev1.PodSpec{NodeName: "win-1"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	server := cni.NewServer(cluster.FromClients("https://cluster.example", fake.NewClientset(set, ready), nil))
	if err := server.OnWindows("n", "p", []cni.WindowsNode{{Name: "win-1"}}).Look(t.Context()); err != nil {
		t.Error(err)
	}
	err := server.OnWindows("n", "p", []cni.WindowsNode{{Name: "win-1"}, {Name: "win-2"}}).Look(t.Context())
	if err == nil || !strings.Contains(err.Error(), "it has no pod on win-2") {
		t.Errorf("the error is %v", err)
	}
}
