package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// RemoveLabels removes labels from a node, by their keys. It reports whether the node had
// any of them.
func (c *Cluster) RemoveLabels(ctx context.Context, name string, keys []string) (bool, error) {
	return c.changeNode(ctx, name, "take labels off node "+name, func(n *corev1.Node) map[string]any {
		removed := map[string]any{}
		for _, key := range keys {
			if _, ok := n.Labels[key]; ok {
				removed[key] = nil
			}
		}
		if len(removed) == 0 {
			return nil
		}
		return map[string]any{"metadata": map[string]any{"labels": removed}}
	})
}

// RemoveTaints removes taints from a node, by their keys and effects; their values do not
// matter. It reports whether the node had any of them.
func (c *Cluster) RemoveTaints(ctx context.Context, name string, taints []corev1.Taint) (bool, error) {
	return c.changeNode(ctx, name, "take taints off node "+name, func(n *corev1.Node) map[string]any {
		left := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(has corev1.Taint) bool {
			return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return has.MatchTaint(&t) })
		})
		if len(left) == len(n.Spec.Taints) {
			return nil
		}
		return map[string]any{"spec": map[string]any{"taints": left}}
	})
}
