// Package placement decides whether a node takes pods, by the scheduler's own functions.
package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// OtherLabels is the reason of Refuses for a node without the labels that pods select.
const OtherLabels = "does not have the labels"

// Refuses returns why a node does not take pods; "": it takes them. Taints for a state of the node, such as a cordon, do not
// count.
func Refuses(n *corev1.Node, spec corev1.PodSpec) string {
	if spec.NodeName != "" && spec.NodeName != n.Name {
		return "is not the node that the pod names"
	}
	matches, err := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: spec}).Match(n)
	if err != nil {
		return "" // the API server rejects the selector
	}
	if !matches {
		return OtherLabels
	}
	taint, found := schedulingv1.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, spec.Tolerations, lasting, true)
	if found {
		return "has the taint " + taint.ToString()
	}
	return ""
}

// lasting reports whether a taint keeps pods away for longer than a state of the node lasts.
func lasting(t *corev1.Taint) bool {
	states := []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable, corev1.TaintNodeMemoryPressure,
		corev1.TaintNodeDiskPressure, corev1.TaintNodeNetworkUnavailable, corev1.TaintNodePIDPressure, corev1.TaintNodeOutOfService,
		"node.cloudprovider.kubernetes.io/uninitialized"}
	return t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.Contains(states, t.Key)
}
