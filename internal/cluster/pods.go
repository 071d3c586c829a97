package cluster

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Pod is the name of a pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// ViaLabel is on each pod through which a swdt reaches a node. Its value is the pod's name, so that a copy
// of the labels on another pod means nothing.
const ViaLabel = "swdt.dev/via"

func podOf(p *corev1.Pod) Pod { return Pod{Namespace: p.Namespace, Name: p.Name} }

// BlockedPod is a pod that does not leave the node, with the reason.
type BlockedPod struct {
	Pod
	Budgets []string `json:"budgets,omitempty"` // the PodDisruptionBudgets that cover the pod
	Message string   `json:"message"`
}

// BlockedPods are pods that did not leave a node, or must not.
type BlockedPods []BlockedPod

func (pods BlockedPods) String() string {
	var each []string
	for _, p := range pods {
		s := "pod " + p.String() + " ("
		if len(p.Budgets) > 0 {
			s += "PodDisruptionBudget " + strings.Join(p.Budgets, ", ") + ": "
		}
		each = append(each, s+p.Message+")")
	}
	return strings.Join(each, ", ")
}

// PodsOn returns all pods that are bound to a node.
func (c *Cluster) PodsOn(ctx context.Context, node string) ([]*corev1.Pod, error) {
	list, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, c.fail("list the pods of node "+node, podsPermission(), err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if p := &list.Items[i]; p.Spec.NodeName == node {
			pods = append(pods, p)
		}
	}
	return pods, nil
}

// daemonSets remembers whether DaemonSets exist.
type daemonSets map[types.NamespacedName]bool

// podsToEvict returns the pods that a drain must move, or a *DrainRefusedError if the drain would
// lose some of them. It adds the DaemonSets that it looks up to sets.
func (c *Cluster) podsToEvict(ctx context.Context, node string, o DrainOptions, sets daemonSets) ([]*corev1.Pod, error) {
	pods, err := c.PodsOn(ctx, node)
	if err != nil {
		return nil, err
	}
	refused := &DrainRefusedError{Node: node}
	var toEvict []*corev1.Pod
	for _, p := range pods {
		staying, err := c.stays(ctx, p, sets)
		if err != nil {
			return nil, err
		}
		if staying {
			continue
		}
		if loss := wouldLose(p, o); loss != "" {
			refused.Pods = append(refused.Pods, BlockedPod{Pod: podOf(p), Message: loss})
			continue
		}
		toEvict = append(toEvict, p)
	}
	if len(refused.Pods) > 0 {
		return nil, refused
	}
	return toEvict, nil
}

// stays reports whether a drain leaves a pod on the node. A pod stays if it has ended; if it
// belongs to a DaemonSet, which would recreate it at once on the same node, even a cordoned one;
// if it is a mirror pod, which the API server cannot end; or if it is swdt's own way to the node.
func (c *Cluster) stays(ctx context.Context, p *corev1.Pod, sets daemonSets) (bool, error) {
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true, nil
	}
	if ended(p) || p.Labels[ViaLabel] == p.Name {
		return true, nil
	}
	owner := metav1.GetControllerOf(p)
	if owner == nil || owner.Kind != "DaemonSet" {
		return false, nil
	}
	name := types.NamespacedName{Namespace: p.Namespace, Name: owner.Name}
	if exists, known := sets[name]; known {
		return exists, nil
	}
	_, err := c.client.AppsV1().DaemonSets(p.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err) // the pod is an orphan then, which no controller would recreate
	if err == nil || missing {
		sets[name] = !missing
		return !missing, nil
	}
	return true, c.fail("look for the DaemonSet of pod "+podOf(p).String(),
		Permission{Verb: "get", Group: "apps", Resource: "daemonsets", Namespace: p.Namespace, Name: owner.Name}, err)
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// wouldLose describes what would be lost for good if the pod were evicted. It returns "" if
// nothing would be lost, or if the options allow the loss.
func wouldLose(p *corev1.Pod, o DrainOptions) string {
	if p.DeletionTimestamp != nil { // the pod is already being deleted
		return ""
	}
	owner := metav1.GetControllerOf(p)
	if !o.Force && (owner == nil || owner.Kind == "DaemonSet") {
		return "no controller would make it anew"
	}
	emptyDir := slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })
	if emptyDir && !o.DeleteEmptyDir {
		return "the data in its emptyDir volumes"
	}
	return ""
}

// budgets returns the names of the PodDisruptionBudgets that cover a pod. If it cannot read
// them, it returns no names, since they are only details of another error.
func (c *Cluster) budgets(ctx context.Context, p *corev1.Pod) []string {
	list, err := c.client.PolicyV1().PodDisruptionBudgets(p.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var names []string
	for _, b := range list.Items {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(p.Labels)) {
			names = append(names, b.Name)
		}
	}
	return names
}
