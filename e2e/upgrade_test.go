//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestUpgradeNode brings a node from one minor version of the real kubeadm and kubelet to the next. The cluster's
// configuration first has a gate that the new kubelet lacks, which the upgrade finds; if the node file ignores that,
// everything is put back. Then it changes, and the node gets it. A setting that was made by hand stays.
func TestUpgradeNode(t *testing.T) {
	c := clusterSandbox(t)
	server := opensshFor(t, c.sandboxInfo)
	file := c.joinFile(t, server.credentials(), joinWith{kubernetes: "1.35.4"})
	newer := c.joinFile(t, server.credentials(), joinWith{})
	ignoring := c.joinFile(t, server.credentials(), joinWith{more: "    join: {nodeName: wine-1, ignorePreflightErrors: [gate-unknown]}\n"})

	original := c.kubectl(t, "get", "configmap", "kubelet-config", "-n", "kube-system", "-o", "jsonpath={.data.kubelet}")
	planted := original + "\nfeatureGates:\n  MemoryManager: true\n"
	c.kubeletConfigMap(t, planted)
	ok(t, "join", "-c", file, "--kubeconfig", c.Kubeconfig, "--allow-reboot")
	c.expectNode(t, "wine-1", "Ready", "v1.35.4")
	t.Logf("config.yaml as kubeadm 1.35.4 wrote it:\n%s", c.configYAML(t))
	c.putConfigYAML(t, c.configYAML(t)+"containerLogMaxFiles: 7\n")

	refused := swdt(t, "join", "-c", newer, "--kubeconfig", c.Kubeconfig)
	if refused.code != 1 || !strings.Contains(refused.stderr, "upgrade node") {
		t.Errorf("a join to another minor version: %v", refused)
	}

	upgrade := []string{"upgrade", "node", "wine-1", "-c", newer, "--kubeconfig", c.Kubeconfig}
	before := c.configYAML(t)
	found := swdt(t, upgrade...)
	if found.code != 1 || !strings.Contains(found.stderr, "Kubernetes 1.36 removed the feature gate MemoryManager") {
		t.Errorf("an upgrade with a gate that the new kubelet lacks: %v", found)
	}
	back := swdt(t, "upgrade", "node", "wine-1", "-c", ignoring, "--kubeconfig", c.Kubeconfig)
	if back.code != 4 || !strings.Contains(back.stderr, "unrecognized feature gate: MemoryManager") {
		t.Errorf("an upgrade with a gate that the new kubelet lacks: %v", back)
	}
	c.expectNode(t, "wine-1", "Ready", "v1.35.4")
	if now := c.configYAML(t); now != before {
		t.Errorf("config.yaml is not as before:\n%s", now)
	}
	if got := c.kubectl(t, "get", "node", "wine-1", "-o", "jsonpath={.spec.unschedulable}"); got != "" {
		t.Errorf("the node was left cordoned: %q", got)
	}

	c.kubeletConfigMap(t, strings.Replace(original, "10.96.0.10", "10.96.0.53", 1))
	dry := ok(t, append(slices.Clone(upgrade), "--dry-run")...)
	for _, part := range []string{"config.yaml has containerLogMaxFiles: 7", "kubelet 1.35.4 → 1.36.3",
		"10.96.0.53", "featureGates.MemoryManager: true → not set"} {
		if !strings.Contains(dry.stdout, part) {
			t.Errorf("the plan lacks %q", part)
		}
	}
	t.Log(ok(t, upgrade...).stdout)
	c.expectNode(t, "wine-1", "Ready", "v1.36.3")
	after := c.configYAML(t)
	if !strings.Contains(after, "10.96.0.53") || !strings.Contains(after, "containerLogMaxFiles: 7") ||
		strings.Contains(after, "MemoryManager") {
		t.Errorf("config.yaml after the upgrade:\n%s", after)
	}
	if got := c.kubectl(t, "get", "node", "wine-1", "-o", "jsonpath={.spec.unschedulable}"); got != "" {
		t.Errorf("the node is still cordoned: %q", got)
	}

	again := decoded[stepsReport](t, ok(t, append(slices.Clone(upgrade), "-o", "json")...))
	if again.Summary.Unchanged != 1 {
		t.Errorf("a second upgrade changes something: %+v", again)
	}
}

// kubeletConfigMap replaces the cluster's configuration of kubelets.
func (c cluster) kubeletConfigMap(t *testing.T, text string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"data": map[string]string{"kubelet": text}})
	if err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "patch", "configmap", "kubelet-config", "-n", "kube-system", "--type=merge", "-p", string(patch))
}

func (c cluster) configFile() string {
	return filepath.Join(c.Prefix, "drive_c", "var", "lib", "kubelet", "config.yaml")
}

func (c cluster) configYAML(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(c.configFile())
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func (c cluster) putConfigYAML(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(c.configFile(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
