//go:build oracles

package manifests_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/rollout/manifests"
	"github.com/swdt-dev/swdt/internal/testing/manifesttest"
)

// TestWriteManifests records the objects of installations with different settings.
func TestWriteManifests(t *testing.T) {
	for _, s := range []manifests.Settings{{}, {
		ControllerImage: "r.example/controller:1", NodeImage: "r.example/node:1", APIServer: "[fd00::1]:6443",
		ControllerNodes: "pool in (a, b),!old,size>3", APIPorts: []int32{6443, 8443},
	}} {
		objects, err := manifests.Objects(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			manifesttest.Write(t, o.GetNamespace(), o.Object)
		}
	}
}
