//go:build oracles

package viapod_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/testing/manifesttest"
)

// TestWriteManifests records the pod through which swdt reaches a node.
func TestWriteManifests(t *testing.T) {
	w := newWorld(t)
	if _, err := w.way().Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pod := range w.pods() {
		pod.TypeMeta.APIVersion, pod.TypeMeta.Kind = "v1", "Pod"
		pod.Status = corev1.PodStatus{}
		manifesttest.Write(t, pod.Namespace, pod)
	}
}
