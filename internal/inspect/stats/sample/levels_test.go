package sample_test

import (
	"fmt"
	"testing"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/inspect/stats/sample"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/cri"
)

// A look at a node has the numbers of its programs, of HNS and of the runtime. A call that fails costs its own numbers alone.
func TestLevels(t *testing.T) {
	n := nodetest.Start(t, "win", simulated.Options{Hostname: "WIN", Preset: simulated.Node})
	client, err := criclient.Open(t.Context(), n.Node, cri.DefaultPipe, criclient.Options{Reconnect: ui.Discard{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	look := func() map[string]stats.Level {
		t.Helper()
		found, err := sample.NewLevels(n.Node, client).Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		by := map[string]stats.Level{}
		for _, l := range found.Levels {
			by[l.Of+" "+l.Measure] = l
		}
		return by
	}
	levels := look()
	for _, name := range []string{"kubelet handles", "kubelet threads", "containerd working set", "kube-proxy handles", "node shims",
		"shims handles", "node " + stats.ShimsUnowned, "node " + stats.HNSEndpoints, "node " + stats.HNSBalancers,
		"node " + stats.Pods, "node " + stats.Containers, "node " + stats.ImageBytes, "node " + stats.MemoryUsed,
		"node " + stats.DiskFree} {
		if _, ok := levels[name]; !ok {
			t.Errorf("no %s among %d levels", name, len(levels))
		}
	}
	if l := levels["kubelet handles"]; l.Value == 0 || l.Instance == "" {
		t.Errorf("%+v", l)
	}
	n.OnCall(func(method string) error {
		if method == agentv1.Compute_Objects_FullMethodName {
			return fmt.Errorf("HNS hangs")
		}
		return nil
	})
	without := look()
	if _, ok := without["node "+stats.HNSEndpoints]; ok || len(without) < len(levels)-3 {
		t.Errorf("%d levels of %d", len(without), len(levels))
	}
}

// A shim without a pod is counted.
func TestAShimWithoutAPodIsCounted(t *testing.T) {
	n := nodetest.Start(t, "win", simulated.Options{Hostname: "WIN", Preset: simulated.Node})
	const image = `C:\Program Files\containerd\bin\containerd-shim-runhcs-v1.exe`
	n.Machine.AddProcess(simulated.ProcessSpec{Image: image, Started: time.Now().Add(-time.Hour),
		CommandLine: `"` + image + `" -namespace k8s.io -address \\.\pipe\containerd-containerd -id deadbeef serve`})
	client, err := criclient.Open(t.Context(), n.Node, cri.DefaultPipe, criclient.Options{Reconnect: ui.Discard{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	found, err := sample.NewLevels(n.Node, client).Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range found.Levels {
		if l.Measure == stats.ShimsUnowned && l.Value == 1 {
			return
		}
	}
	t.Errorf("%+v", found.Levels)
}
