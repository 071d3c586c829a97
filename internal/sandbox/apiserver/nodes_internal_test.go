package apiserver

import (
	"testing"
	"time"
)

// A stall of the whole process is longer than the leases are valid. A node whose kubelet renews its lease after the
// stall is never reported as unknown.
func TestAStallIsNoSilence(t *testing.T) {
	c, err := Start(Options{NodeGrace: 10 * time.Hour}) // the next look of the cluster itself is in an hour
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	renew := func() {
		t.Helper()
		err := c.plant(object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
			"metadata": object{"name": "win-1", "namespace": "kube-node-lease"},
			"spec":     object{"renewTime": c.now().UTC().Format(time.RFC3339)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	err = c.plant(object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "win-1"},
		"status": object{"conditions": []any{object{"type": "Ready", "status": "True"}}}})
	if err != nil {
		t.Fatal(err)
	}
	var silent map[string]int
	look := func(times int, want string) {
		t.Helper()
		for range times {
			silent = c.lookAtNodes(silent)
		}
		o, _ := c.store.get(key{"nodes", "", "win-1"})
		if state := ready(o); state != want {
			t.Errorf("after %d looks, Ready is %q, want %q", times, state, want)
		}
	}
	for stall := time.Duration(1); stall <= 2; stall++ {
		renew()
		c.SetClock(stall * 20 * time.Hour)
		look(silentLooks-1, "True")
		renew()
		look(1, "True")
	}
	c.SetClock(60 * time.Hour)
	look(silentLooks-1, "True")
	look(1, "Unknown")
}
