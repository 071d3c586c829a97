package node_test

import (
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
)

func TestTheNameOfTheNodeObject(t *testing.T) {
	n := nodetest.Start(t, "file-name", simulated.Options{Hostname: "WIN-1", Preset: simulated.Minimal})
	expect := func(want string, join v1alpha1.Join) {
		t.Helper()
		if got, err := n.ObjectName(t.Context(), join); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	expect("win-1", v1alpha1.Join{})
	const told = `C:\k\kubelet.exe --windows-service --hostname-override=Win-Told`
	if _, err := n.Services.Create(t.Context(), &agentv1.ServiceConfig{Name: "kubelet", CommandLine: told,
		StartType: agentv1.StartType_START_TYPE_MANUAL}); err != nil {
		t.Fatal(err)
	}
	expect("win-told", v1alpha1.Join{})
	expect("wanted", v1alpha1.Join{NodeName: "wanted"})

	// Without a connection to the machine.
	file := v1alpha1.Node{Metadata: v1alpha1.Metadata{Name: "Win-File"}}
	if got := node.LikelyObjectName(file); got != "win-file" {
		t.Errorf("got is %q, want %q", got, "win-file")
	}
	file.Spec.Kubernetes.Join.NodeName = "wanted"
	if got := node.LikelyObjectName(file); got != "wanted" {
		t.Errorf("got is %q, want %q", got, "wanted")
	}
}
