package smoke

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/ui"
)

// The functions below are the parts of a smoke test that other proofs of a cluster use.

// Account is the name of the pods' ServiceAccount.
const Account = account

// NewPod returns a pod for a node of either system, which runs agnhost with these arguments, without
// rights and without a token.
func NewPod(namespace, name, image string, n cluster.Node, args ...string) *corev1.Pod {
	pod := linuxPod(namespace, image)
	delete(pod.Labels, roleLabel)
	if systemOf(n) == windows {
		pod = windowsPod(namespace, name, image, n)
	}
	pod.Name, pod.Spec.Affinity, pod.Spec.Tolerations = name, onNode(n.Name), tolerated(n)
	pod.Spec.Containers[0].Args, pod.Spec.Containers[0].Ports = args, nil
	return pod
}

// NewAccount returns the pods' ServiceAccount, which has no rights.
func NewAccount(namespace string) *corev1.ServiceAccount { return serviceAccount(namespace) }

// Container is the name of the only container of each pod.
const Container = container

// CannotRun returns the reason why no pod of NewPod is to run on a node, or "".
func CannotRun(n cluster.Node) string {
	switch systemOf(n) {
	case linux:
		return cannotServe(n)
	case windows:
		if err := unfit(n); err != nil {
			return err.Error()
		}
		return ""
	}
	return "has neither Linux nor Windows"
}

// IsControlPlane reports whether a node has the taint of a control plane.
func IsControlPlane(n cluster.Node) bool {
	return slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool {
		return slices.Contains(controlPlaneTaints(), t.Key)
	})
}

// Await waits until a pod is scheduled and runs, and returns it. limit bounds the start, which includes
// the pull of its image. n is its node, and flag the flag that names another image.
func Await(ctx context.Context, c *cluster.Cluster, pod cluster.Pod, n cluster.Node, limit time.Duration, flag string,
	r ui.Reporter) (*corev1.Pod, error) {
	w := &run{Options: Options{Wait: limit}, c: c}
	if _, err := w.awaitPod(ctx, pod, "scheduled", w.scheduleLimit(), isScheduled, r); err != nil {
		return nil, err
	}
	build := ""
	if systemOf(n) == windows {
		build = n.KernelVersion
	}
	return w.awaitPod(ctx, pod, "started", limit, (&starting{build: build, flag: flag}).look, r)
}

// onNode returns the affinity of a pod for one node. It matches the node's name, since its label
// kubernetes.io/hostname may have another value.
func onNode(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}},
		},
	}}
}

// Fetch sends an HTTP request from a pod, by curl in its container, and returns the body of the answer. system
// is the operating system of the pod's node. Fetch sends no second request if the first one fails.
func Fetch(ctx context.Context, k Kubelets, from cluster.Pod, system, url string) (string, error) {
	q := request{from: from, system: system, url: url}
	a, err := (&run{Options: Options{Kubelets: k}}).send(ctx, q)
	if err != nil {
		return "", err
	}
	return a.body, q.wrong(a)
}
