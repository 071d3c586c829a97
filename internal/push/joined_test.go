package push

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
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
	if len(components) != 3 {
		t.Fatalf("components has %d elements, want 3: %v", len(components), components)
	}
	containerd, kubelet := components[0], components[1]
	switch {
	case containerd.Name != "containerd":
		t.Errorf("containerd.Name is %q, want %q", containerd.Name, "containerd")
	case containerd.Version != simulated.ContainerdVersion:
		t.Errorf("containerd.Version is %v, want %v", containerd.Version, simulated.ContainerdVersion)
	case containerd.Drift != DriftNone:
		t.Errorf("containerd.Drift is %v, want %v", containerd.Drift, DriftNone)
	case containerd.Service.State != "running":
		t.Errorf("containerd.Service.State is %q, want %q", containerd.Service.State, "running")
	}
	switch {
	case kubelet.Name != "kubelet":
		t.Errorf("kubelet.Name is %q, want %q", kubelet.Name, "kubelet")
	case kubelet.Version != simulated.KubeletVersion:
		t.Errorf("kubelet.Version is %v, want %v", kubelet.Version, simulated.KubeletVersion)
	case kubelet.Drift != DriftVersion:
		t.Errorf("kubelet.Drift is %v, want %v", kubelet.Drift, DriftVersion)
	case kubelet.Message != "":
		t.Errorf(`kubelet.Message is %q, want ""`, kubelet.Message)
	}
}

// A provisioner replaces the component of the same name. For a service, status examines the program
// in the service's command line, in whatever folder it is.
func TestStatusFindsTheServicesProgram(t *testing.T) {
	b := realBench(t, simulated.BinarySpec{Version: "v1.30.1"})
	b.doc.Node.Spec.Kubernetes.Provisioners = b.doc.Node.Spec.Kubernetes.Provisioners[:1]
	const elsewhere = `C:\elsewhere\kubelet.exe`
	b.node.Put(elsewhere, simulated.Binary(simulated.BinarySpec{Name: "kubelet", Version: "v1.31.0"}))
	if _, err := b.node.Services.Configure(t.Context(), &agentv1.ServiceConfig{Name: "kubelet", CommandLine: elsewhere +
		" --windows-service"}); err != nil {
		t.Fatal(err)
	}
	// Until the service starts again, its process runs the file of its earlier registration.
	if old := b.components()[1]; old.Destination != elsewhere || old.Version != simulated.KubeletVersion ||
		old.Drift != DriftDestination || old.Runs != kubeletPath {
		t.Errorf("before the restart: %+v", old)
	}
	if _, err := b.node.Services.Stop(t.Context(), &agentv1.StopServiceRequest{Name: "kubelet"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.node.Services.Start(t.Context(), &agentv1.StartServiceRequest{Name: "kubelet"}); err != nil {
		t.Fatal(err)
	}
	components := b.components()
	if len(components) != 3 {
		t.Fatalf("components has %d elements, want 3: %v", len(components), components)
	}
	switch kubelet := components[1]; {
	case kubelet.Destination != elsewhere:
		t.Errorf("kubelet.Destination is %v, want %v", kubelet.Destination, elsewhere)
	case !strings.Contains(kubelet.Version, "1.31.0"):
		t.Errorf("kubelet.Version lacks %q:\n%s", "1.31.0", kubelet.Version)
	}
}

// status lists kube-proxy if it is a service, also one behind a wrapper, but compares it with
// nothing.
func TestStatusOfKubeProxy(t *testing.T) {
	type shown struct {
		Drift         Drift
		Message, Path string
	}
	const path, wrapper = `C:\k\kube-proxy.exe`, `C:\k\nssm.exe`
	for name, c := range map[string]struct {
		change func(*bench) error
		want   []shown
	}{
		"a service": {func(*bench) error { return nil }, []shown{{DriftNone, "", path}}},
		"another program": {func(b *bench) error {
			b.node.Put(wrapper, simulated.Binary(simulated.BinarySpec{Name: "nssm"}))
			_, err := b.node.Services.Configure(b.t.Context(), &agentv1.ServiceConfig{Name: "kube-proxy",
				CommandLine: wrapper})
			return errors.Join(err, b.node.Files.Remove(path))
		}, []shown{{DriftUnknown, "the program of its service is unknown: the registry lacks the value Application in " +
			"the service's key Parameters", path}}},
		"its file is gone": {func(b *bench) error {
			return b.node.Files.Remove(path)
		}, []shown{{DriftMissing, "", path}}},
		"no service": {func(b *bench) error {
			_, err := b.node.Services.Delete(b.t.Context(), &agentv1.DeleteServiceRequest{Name: "kube-proxy"})
			return err
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := realBench(t, simulated.BinarySpec{Version: "v1.30.1"})
			b.doc.Node.Spec.Kubernetes.Provisioners = nil
			if _, err := b.node.Services.Stop(t.Context(),
				&agentv1.StopServiceRequest{Name: "kube-proxy"}); err != nil {
				t.Fatal(err)
			}
			if err := c.change(b); err != nil {
				t.Fatal(err)
			}
			var got []shown
			for _, component := range b.components() {
				if component.Name == "kube-proxy" {
					got = append(got, shown{component.Drift, component.Message, component.Destination})
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// On a machine without containerd and kubelet, status reports neither.
func TestStatusOfABareMachine(t *testing.T) {
	b := realBench(t, simulated.BinarySpec{})
	b.node = nodetest.Start(t, "w1", simulated.Options{Preset: simulated.Minimal})
	b.doc.Node.Spec.Kubernetes.Provisioners = nil
	if components := b.components(); len(components) != 0 {
		t.Errorf("components is %v, want it empty", components)
	}
}
