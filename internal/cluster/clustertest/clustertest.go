// Package clustertest makes nodes in the clusters of tests.
package clustertest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// MakeNode makes a node with its status. No kubelet belongs to it.
func MakeNode(t testing.TB, c *cluster.Cluster, n *corev1.Node) {
	t.Helper()
	n = n.DeepCopy()
	n.UID = "" // the API server chooses it
	if _, err := c.Clientset().CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	SetNodeStatus(t, c, n.Name, func(status *corev1.NodeStatus) { *status = n.Status })
}

// SetNodeStatus changes the status of a node. Controllers write to a node too, so the change is repeated after a
// conflict.
func SetNodeStatus(t testing.TB, c *cluster.Cluster, name string, change func(*corev1.NodeStatus)) {
	t.Helper()
	nodes := c.Clientset().CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&n.Status)
		_, err = nodes.UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
