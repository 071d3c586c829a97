//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/testing/vmguest"
)

// TestUpWithAVM makes a real cluster of kind and a VM of real QEMU on kind's bridge, and joins the VM. The
// guest is Linux and acts as Windows: its kubeadm and kubelet are simulated, and use the real API server.
func TestUpWithAVM(t *testing.T) {
	if !inDocker(t) {
		return
	}
	image := vmguest.Disk(t)
	loadKindImage(t)
	home := newVMHome(t)
	t.Setenv("KUBECONFIG", filepath.Join(home.folder, "kubeconfig"))
	before := inventory(t)
	node := home.joiningFile(t, image)
	ok(t, "vm", "network", "prepare", "-c", node) // makes kind's network, and the tap on its bridge
	files := []string{"-c", clusterFile(t), "-c", node}

	r := swdtWithin(t, bootLimit+commandLimit, append([]string{"up", "--allow-reboot", "-o", "json"}, files...)...)
	if r.code != 0 {
		t.Fatalf("up: exit code %d", r.code)
	}
	stages := []string{"cluster changed", "machine " + vmName + " changed", "join " + vmName + " changed"}
	if diff := cmp.Diff(stages, decoded[upReport](t, r).results()); diff != "" {
		t.Errorf("up (-want +got):\n%s", diff)
	}
	c := cluster{sandboxInfo{Kubeconfig: os.Getenv("KUBECONFIG")}}
	c.expectNode(t, vmName, "Ready", "v1.36.3", vmAddress, "Windows Server 2022 Datacenter")

	again := decoded[upReport](t, ok(t, append([]string{"up", "-o", "json"}, files...)...))
	if again.Result != "unchanged" {
		t.Errorf("a second up: %v", again.results())
	}
	ok(t, append([]string{"down", "--yes"}, files...)...)
	if left := home.processes(t); len(left) != 0 {
		t.Errorf("processes are left: %v", left)
	}
	ok(t, "vm", "network", "remove", "--yes", "-c", node)
	if diff := cmp.Diff(before, inventory(t)); diff != "" {
		t.Errorf("Docker (-before +after):\n%s", diff)
	}
}

// joiningFile writes the node file of a VM on the network of kind, whose simulated Windows joins with
// simulated programs. The guest's configuration has the user's key, so that one command makes and starts the
// VM, and the configuration of a pod network, which the pods of a network would write.
func (h vmHome) joiningFile(t *testing.T, image string) string {
	t.Helper()
	signer, key, err := sandbox.NewKey("test")
	if err != nil {
		t.Fatal(err)
	}
	h.writeCD(t, vmguest.Settings{Hostname: vmName, Restart: "windows",
		Files:          map[string]string{`C:\etc\cni\net.d\10-lab.conf`: "{}"},
		AuthorizedKeys: []string{string(ssh.MarshalAuthorizedKey(signer.PublicKey()))}})
	program := func(name, version string) string {
		return h.write(t, name+".exe", simulated.Binary(simulated.BinarySpec{Name: name, Version: version}))
	}
	text := fmt.Sprintf(`apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata:
  name: %s
spec:
  credentials:
    username: %s
    privateKey: %q
  machine:
    image:
      disk: %q
      drivers: %q # the guest's configuration
    cpus: 1
    memory: 512Mi
    disk: 2Gi
    accelerator: tcg
    network: {mode: bridge, bridge: kind}
  kubernetes:
    version: 1.36.3
    containerd: {version: 1.7.12, source: %q, pauseImage: registry.k8s.io/pause:3.10}
    kubelet: {source: %q, kubeadmSource: %q, logRunnerSource: %q}
    join: {nodeName: %[1]s, nodeIP: %[10]s}
`, vmName, vmguest.User, h.write(t, "id", key), image, h.cd(), program("containerd", "v1.7.12"),
		program("kubelet", "v1.36.3"), program("kubeadm", "v1.36.3"), program("kube-log-runner", "v1.36.3"), vmAddress)
	return h.write(t, "node.yaml", []byte(text))
}

// write writes a file into the user's folder, and returns its path.
func (h vmHome) write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(h.folder, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
