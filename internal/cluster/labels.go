package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	kubelet "k8s.io/kubelet/pkg/apis"
)

// KubeletMaySet reports whether a kubelet may give its own node this label: its flag
// --node-labels accepts the label, and the API server's NodeRestriction allows it. Other
// labels must be set with SetLabels.
func KubeletMaySet(label string) bool {
	domain, _, qualified := strings.Cut(label, "/")
	if !qualified || kubelet.IsKubeletLabel(label) {
		return true
	}
	for _, reserved := range []string{"kubernetes.io", "k8s.io"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			return false
		}
	}
	return true
}

// SetLabels gives a node these labels and keeps its other labels. It reports whether any
// of the given labels was missing or different.
func (c *Cluster) SetLabels(ctx context.Context, name string, labels map[string]string) (bool, error) {
	doing := "label node " + name
	return c.changeNode(ctx, name, doing, func(n *corev1.Node) map[string]any {
		wanting := map[string]string{}
		for key, value := range labels {
			if has, ok := n.Labels[key]; !ok || has != value {
				wanting[key] = value
			}
		}
		if len(wanting) == 0 {
			return nil
		}
		return map[string]any{"metadata": map[string]any{"labels": wanting}}
	})
}

// SetTaints gives a node these taints and keeps its other taints. It reports whether any
// of the given taints was missing or different.
func (c *Cluster) SetTaints(ctx context.Context, name string, taints []corev1.Taint) (bool, error) {
	doing := "taint node " + name
	return c.changeNode(ctx, name, doing, func(n *corev1.Node) map[string]any {
		all, changed := mergeTaints(n.Spec.Taints, taints)
		if !changed {
			return nil
		}
		return map[string]any{"spec": map[string]any{"taints": all}}
	})
}

// mergeTaints adds wanted to the present taints. A wanted taint replaces a present one
// with the same key and effect.
func mergeTaints(present, wanted []corev1.Taint) (all []corev1.Taint, changed bool) {
	all = slices.Clone(present)
	for _, w := range wanted {
		at := slices.IndexFunc(all, func(t corev1.Taint) bool { return t.MatchTaint(&w) })
		switch {
		case at < 0:
			all, changed = append(all, w), true
		case all[at].Value != w.Value:
			all[at].Value, changed = w.Value, true
		}
	}
	return all, changed
}

// changeNode passes a node to the function change, and applies the patch that this function
// returns; nil means that no patch is needed. If another client changed the node meanwhile,
// changeNode retries. A patch, unlike an update, does not touch fields that only a newer
// server has.
func (c *Cluster) changeNode(ctx context.Context, name, doing string,
	change func(*corev1.Node) map[string]any) (changed bool, err error) {
	nodes := c.client.CoreV1().Nodes()
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		n, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return c.nodeError(doing, "get", name, err)
		}
		patch := change(n)
		if changed = patch != nil; !changed {
			return nil
		}
		document, err := json.Marshal(unlessChanged(patch, n))
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
		_, err = nodes.Patch(ctx, name, types.MergePatchType, document, metav1.PatchOptions{FieldManager: "swdt"})
		return c.nodeError(doing, "patch", name, err)
	})
	return changed && err == nil, err
}

// unlessChanged makes a patch apply only if the object has not changed since it was read.
func unlessChanged(patch map[string]any, n *corev1.Node) map[string]any {
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["resourceVersion"], metadata["uid"] = n.ResourceVersion, n.UID
	return patch
}

// nodeError converts err as the method fail does. The needed permission is to do verb with the node.
func (c *Cluster) nodeError(doing, verb, name string, err error) error {
	return c.fail(doing, Permission{Verb: verb, Resource: "nodes", Name: name}, err)
}

// DeleteNode deletes a Node object. It reports whether the object existed.
func (c *Cluster) DeleteNode(ctx context.Context, name string) (bool, error) {
	err := c.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, c.nodeError("delete node "+name, "delete", name, err)
}
