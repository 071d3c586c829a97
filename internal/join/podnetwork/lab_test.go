package podnetwork_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane/controlplanetest"
)

// lab returns a real control plane on loopback, and the folder with the published manifests.
func lab(t *testing.T) (c *cluster.Cluster, mirror string) {
	t.Helper()
	mirror = controlplanetest.Lab(t, "networks")
	plane := controlplanetest.Start(t, controlplane.Options{}, mirror)
	c, err := cluster.Open(cluster.Options{Kubeconfig: plane.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	return c, mirror
}
