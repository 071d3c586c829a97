//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestThroughTheCluster uses a node through its cluster alone: the real API server, kubelet and containerd
// carry the stream of the agent, and pushes replace each of them below it.
func TestThroughTheCluster(t *testing.T) {
	c := newPodCluster(t)
	c.needsAddress(t)
	// Wine has no PowerShell, and its prefix lacks SYSTEM's profile.
	ok(t, "cp", "-c", c.config, windowsProgram(t, "powershell"), `node:C:\windows\system32\powershell.exe`)
	profile := filepath.Join(c.cluster.Prefix, "drive_c/windows/system32/config/systemprofile")
	if err := os.MkdirAll(profile, 0o700); err != nil {
		t.Fatal(err)
	}
	credentials := fmt.Sprintf("    kubernetes: {node: wine-1, kubeconfig: %s, image: '%s/burn:1'}\n",
		c.cluster.Kubeconfig, c.registry)

	file := nodeFile(t, credentials, provisioner("kubelet", "", lab(t, "node/kubelet-1.36.3-edited.exe"), kubeletExe, ""))
	if r := ok(t, "status", "-c", file); !strings.Contains(r.stdout, "kubelet") {
		t.Errorf("status: %v", r)
	}
	c.expectNoViaPods(t)

	c.expectPushed(t, file, "changed")
	c.expectNode(t, "wine-1", "Ready", "v1.36.3-edited", "containerd://1.7.12")
	c.expectPushed(t, file, "unchanged")
	ok(t, "rollback", "kubelet", "-c", file)
	c.expectNode(t, "wine-1", "Ready", "v1.36.3", "containerd://1.7.12")

	broken := nodeFile(t, credentials, provisioner("kubelet", "", lab(t, "kubelet-v1.29.1-crash-at-start.exe"),
		kubeletExe, ""))
	if r := swdt(t, "push", "-c", broken); r.code != 4 {
		t.Errorf("a kubelet that does not come up: %v", r)
	}
	c.expectNode(t, "wine-1", "Ready", "v1.36.3", "containerd://1.7.12")

	runtime := nodeFile(t, credentials, containerdProvisioner(t, "1.7.11"))
	c.expectPushed(t, runtime, "changed")
	c.expectNode(t, "wine-1", "Ready", "v1.36.3", "containerd://1.7.11")
	c.expectNoViaPods(t)
	left, err := filepath.Glob(filepath.Join(profile, "swdt-agent-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in SYSTEM's profile: %v, %v", left, err)
	}
}

func (c podCluster) expectPushed(t *testing.T, file, result string) {
	t.Helper()
	r := decoded[report](t, ok(t, "push", "-c", file, "-o", "json"))
	if len(r.Nodes) != 1 || r.Nodes[0].Result != result {
		t.Errorf("push: %+v, want %s", r, result)
	}
}

func (c podCluster) expectNoViaPods(t *testing.T) {
	t.Helper()
	eventually(t, "swdt's pods are gone", func() error {
		if left := c.kubectl(t, "get", "pods", "-n", "swdt-system", "-o", "name"); left != "" {
			return fmt.Errorf("pods: %s", left)
		}
		return nil
	})
}
