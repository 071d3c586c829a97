package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// cordonAnnotation marks a node that swdt cordoned, so that a later run removes only
// swdt's own cordon.
const cordonAnnotation = "swdt.dev/cordoned"

// cordon marks a node as unschedulable. It reports whether swdt made the cordon, in this
// run or an earlier one.
func (c *Cluster) cordon(ctx context.Context, name string) (bool, error) {
	ours := false
	_, err := c.changeNode(ctx, name, "cordon node "+name, func(n *corev1.Node) map[string]any {
		if n.Spec.Unschedulable {
			_, ours = n.Annotations[cordonAnnotation]
			return nil
		}
		ours = true
		return map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{cordonAnnotation: time.Now().UTC().Format(
				time.RFC3339)}},
			"spec": map[string]any{"unschedulable": true},
		}
	})
	return ours && err == nil, err
}

// Uncordon removes a cordon that Drain made, in this run or an earlier one, and reports
// whether there was one. A cordon that swdt did not make stays. If the node does not exist,
// Uncordon returns false and no error.
func (c *Cluster) Uncordon(ctx context.Context, name string) (bool, error) {
	changed, err := c.changeNode(ctx, name, "uncordon node "+name, func(n *corev1.Node) map[string]any {
		if _, ours := n.Annotations[cordonAnnotation]; !ours {
			return nil
		}
		return map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{cordonAnnotation: nil}},
			"spec":     map[string]any{"unschedulable": nil},
		}
	})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return changed, err
}

// CordonedByUs reports whether the node is cordoned and a Drain cordoned it.
func (n Node) CordonedByUs() bool {
	_, ours := n.Annotations[cordonAnnotation]
	return ours && n.Cordoned
}
