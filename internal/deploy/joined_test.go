package deploy

import (
	"strings"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host/simulated"
	"github.com/swdt-dev/swdt/internal/node/nodetest"
)

func (b *bench) components() []ComponentStatus {
	b.t.Helper()
	status, err := b.status()
	if err != nil {
		b.t.Fatal(err)
	}
	return status.Components
}

// Without a provisioner, status reports on containerd and kubelet as a join left
// them, compared with the versions that the node file has for a join.
func TestStatusOfWhatIsJoined(t *testing.T) {
	b := realBench(t, simulated.BinarySpec{Version: "v1.30.1"})
	b.doc.Node.Spec.Kubernetes.Provisioners = nil
	b.doc.Node.Spec.Kubernetes.Version = "1.30.0"
	components := b.components()
	if len(components) != 2 {
		t.Fatalf("got %+v", components)
	}
	containerd, kubelet := components[0], components[1]
	if containerd.Name != "containerd" || containerd.Version != simulated.ContainerdVersion || containerd.Drift != DriftNone || containerd.Service.State != "running" {
		t.Errorf("got %+v", containerd)
	}
	if kubelet.Name != "kubelet" || kubelet.Version != simulated.KubeletVersion || kubelet.Drift != DriftVersion || kubelet.Message != "" {
		t.Errorf("got %+v", kubelet)
	}
}

// A provisioner stands for the component of its name; a service is looked at where
// its program is.
func TestStatusFindsTheServicesProgram(t *testing.T) {
	b := realBench(t, simulated.BinarySpec{Version: "v1.30.1"})
	b.doc.Node.Spec.Kubernetes.Provisioners = b.doc.Node.Spec.Kubernetes.Provisioners[:1]
	const elsewhere = `C:\elsewhere\kubelet.exe`
	b.node.Put(elsewhere, simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: "v1.31.0"}))
	if _, err := b.node.Services.Configure(t.Context(), &agentv1.ServiceConfig{Name: "kubelet", CommandLine: elsewhere + " --windows-service"}); err != nil {
		t.Fatal(err)
	}
	components := b.components()
	if len(components) != 2 {
		t.Fatalf("got %+v", components)
	}
	if kubelet := components[1]; kubelet.Destination != elsewhere || !strings.Contains(kubelet.Version, "1.31.0") {
		t.Errorf("got %+v", kubelet)
	}
}

// On a machine with neither, neither is reported.
func TestStatusOfABareMachine(t *testing.T) {
	b := realBench(t, simulated.BinarySpec{})
	b.node = nodetest.Start(t, "w1", simulated.Options{Preset: simulated.Minimal})
	b.doc.Node.Spec.Kubernetes.Provisioners = nil
	if components := b.components(); len(components) != 0 {
		t.Errorf("got %+v", components)
	}
}
