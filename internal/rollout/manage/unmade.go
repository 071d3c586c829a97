package manage

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
)

// unmade returns the DaemonSets of the installation that have fewer pods than nodes because the cluster refuses to
// create them, with the refusal in the API server's words. It is empty if the user may not read them: the state of
// rollouts does not depend on it.
func unmade(ctx context.Context, c *cluster.Cluster) []string {
	all := []string{}
	sets, err := c.Clientset().AppsV1().DaemonSets(manifests.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return all
	}
	for _, d := range sets.Items {
		if d.Status.CurrentNumberScheduled >= d.Status.DesiredNumberScheduled {
			continue
		}
		reason := refusal(ctx, c, d.Name)
		if reason == "" {
			continue
		}
		all = append(all, fmt.Sprintf("DaemonSet %s/%s has pods on %d of %d nodes: %s", d.Namespace, d.Name,
			d.Status.CurrentNumberScheduled, d.Status.DesiredNumberScheduled, reason))
	}
	return all
}

// refusal returns the message of the last event that reports why a DaemonSet's pods are not created; "" if there is none.
func refusal(ctx context.Context, c *cluster.Cluster, name string) string {
	events, err := c.Clientset().CoreV1().Events(manifests.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.kind=DaemonSet,involvedObject.name=" + name + ",reason=FailedCreate"})
	if err != nil {
		return ""
	}
	found := slices.DeleteFunc(events.Items, func(e corev1.Event) bool {
		return e.Reason != "FailedCreate" || e.InvolvedObject.Name != name
	})
	if len(found) == 0 {
		return ""
	}
	last := slices.MaxFunc(found, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return last.Message
}
