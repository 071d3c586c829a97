package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
)

// A real cluster needs programs that the user must build first. Up reports missing ones before it
// starts anything.
func TestAWineClusterNamesWhatIsMissing(t *testing.T) {
	needWine(t)
	o := options(t)
	o.Driver, o.Cluster = "wine", true
	lab := t.TempDir()
	t.Setenv("SWDT_LAB", lab)
	if _, err := sandbox.Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), "make lab") {
		t.Errorf("no lab at all: %v", err)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
		"kubeadm", "kubectl"} {
		touch(t, filepath.Join(lab, "linux", name))
	}
	if err := controlplane.Check(filepath.Join(lab, "linux")); err != nil {
		t.Skip(err) // not Linux
	}
	_, err := sandbox.Up(t.Context(), o)
	switch {
	case err == nil:
		t.Error("no programs for a node: no error, want one")
	case !strings.Contains(err.Error(), "make lab"):
		t.Errorf("no programs for a node: err.Error() lacks %q:\n%s", "make lab", err.Error())
	case !strings.Contains(err.Error(), "containerd-"):
		t.Errorf("no programs for a node: err.Error() lacks %q:\n%s", "containerd-", err.Error())
	}
	if list, err := sandbox.Status(t.Context(), o); err != nil || len(list) > 0 {
		t.Errorf("something runs: %v, %v", list, err)
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
}

// Beside the kubeconfig, `swdt join` needs only the node file of a Wine node with a cluster.
func TestAWineNodeJoinsWithItsNodeFile(t *testing.T) {
	needWine(t)
	if binaries, err := controlplane.DefaultBinaries(); err != nil {
		t.Fatal(err)
	} else if err := controlplane.Check(binaries); err != nil {
		t.Skipf("%v", err)
	}
	o := options(t)
	o.Driver, o.Cluster, o.Name = "wine", true, "My_node"
	info := up(t, o)
	if _, err := os.Stat(info.Kubeconfig); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(info.Config)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `nodeName: "my-node"`) {
		t.Errorf("the node's name:\n%s", text)
	}
	docs, err := config.Load([]string{info.Config}, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := docs[0].Node.Spec.Kubernetes
	for _, path := range []string{spec.Containerd.Source, spec.Kubelet.Source, spec.Kubelet.KubeadmSource,
		spec.Kubelet.LogRunnerSource, spec.Kubelet.KubeProxySource} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}
