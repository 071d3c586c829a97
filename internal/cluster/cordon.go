package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// cordonAnnotation is on a node that we cordoned, so that a later run knows that
// it was us, and nobody else's cordon is taken back.
const cordonAnnotation = "swdt.dev/cordoned"

// cordon keeps new pods off a node. It returns whether the cordon is ours, of
// now or of an earlier run.
func (c *Cluster) cordon(ctx context.Context, name string) (bool, error) {
	ours := false
	_, err := c.changeNode(ctx, name, "cordon node "+name, func(n *corev1.Node) map[string]any {
		if n.Spec.Unschedulable {
			_, ours = n.Annotations[cordonAnnotation]
			return nil
		}
		ours = true
		return map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{cordonAnnotation: time.Now().UTC().Format(time.RFC3339)}},
			"spec":     map[string]any{"unschedulable": true},
		}
	})
	return ours && err == nil, err
}

// Uncordon takes back the cordon that Drain made, also in an earlier run, and
// returns whether there was one. Somebody else's cordon stays. A node that does
// not exist has none.
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

// CordonedByUs is whether a Drain cordoned the node and nobody has taken that
// back yet.
func (n Node) CordonedByUs() bool {
	_, ours := n.Annotations[cordonAnnotation]
	return ours && n.Cordoned
}
