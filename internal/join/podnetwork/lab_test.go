package podnetwork_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
)

// lab returns a real control plane on loopback, and the folder with the published manifests.
func lab(t *testing.T) (c *cluster.Cluster, mirror string) {
	t.Helper()
	binaries, err := controlplane.DefaultBinaries()
	if err != nil {
		t.Fatal(err)
	}
	mirror = filepath.Join(filepath.Dir(binaries), "networks")
	err = controlplane.Check(binaries)
	if err == nil {
		_, err = os.Stat(mirror)
	}
	if err != nil {
		if os.Getenv("SWDT_LAB_CLUSTER") == "required" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	state, err := os.MkdirTemp("", "swdt-podnetwork-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(state); err != nil {
			t.Error(err)
		}
	})
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Binaries: binaries, State: state})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c, err = cluster.Open(cluster.Options{Kubeconfig: plane.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	return c, mirror
}
