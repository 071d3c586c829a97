package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cordonAnnotation marks a node that swdt cordoned, so that a later run removes only
// swdt's own cordon.
const cordonAnnotation = "swdt.dev/cordoned"

// Cordon marks a node as unschedulable, as Drain does.
func (c *Cluster) Cordon(ctx context.Context, name string) error {
	_, _, err := c.cordon(ctx, name)
	return err
}

// cordon marks a node as unschedulable. It reports whether it has changed the node, and whether the cordon is swdt's,
// of this run or an earlier one.
func (c *Cluster) cordon(ctx context.Context, name string) (changed, ours bool, err error) {
	changed, err = c.changeNode(ctx, name, "cordon node "+name, func(n *corev1.Node) map[string]any {
		if n.Spec.Unschedulable {
			ours = cordonedByUs(n)
			return nil
		}
		ours = true
		return map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{cordonAnnotation: time.Now().UTC().Format(
				time.RFC3339)}},
			"spec": map[string]any{"unschedulable": true},
		}
	})
	return changed, ours && err == nil, err
}

// Uncordon removes a cordon that Drain made, in this run or an earlier one, and reports
// whether there was one. A cordon that swdt did not make stays. If the node does not exist,
// Uncordon returns false and no error.
func (c *Cluster) Uncordon(ctx context.Context, name string) (bool, error) {
	ours := false
	_, err := c.changeNode(ctx, name, "uncordon node "+name, func(n *corev1.Node) map[string]any {
		if _, marked := n.Annotations[cordonAnnotation]; !marked {
			return nil
		}
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{cordonAnnotation: nil}}}
		if ours = cordonedByUs(n); ours {
			patch["spec"] = map[string]any{"unschedulable": nil}
		}
		return patch
	})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return ours && err == nil, err
}

// cordonedByUs reports whether a Drain made the node's cordon. `kubectl uncordon` leaves the annotation, and a user
// may have cordoned the node since. Then no writer of the object set both. An object that does not name the writers
// of its fields is judged by the annotation.
func cordonedByUs(n *corev1.Node) bool {
	_, marked := n.Annotations[cordonAnnotation]
	return marked && n.Spec.Unschedulable && (len(n.ManagedFields) == 0 || slices.ContainsFunc(n.ManagedFields, setBoth))
}

// setBoth reports whether a writer set the cordon and its annotation.
func setBoth(writer metav1.ManagedFieldsEntry) bool {
	var set struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if writer.FieldsV1 == nil || json.Unmarshal(writer.FieldsV1.GetRawBytes(), &set) != nil {
		return false
	}
	_, annotation := set.Metadata.Annotations["f:"+cordonAnnotation]
	_, cordon := set.Spec["f:unschedulable"]
	return annotation && cordon
}
