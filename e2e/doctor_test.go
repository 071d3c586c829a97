//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// doctorReport has the promised fields of `swdt doctor -o json`.
type doctorReport struct {
	Nodes []struct {
		Name, Result, Windows string
		Rules                 []string
		Skipped               []struct{ Rule, Why string }
		Findings              []struct{ Rule, Severity, What, Evidence, Remedy, Link string }
	}
}

// worse returns the rules that found an error or a warning.
func (r doctorReport) worse() (rules []string) {
	for _, f := range r.Nodes[0].Findings {
		if f.Severity != "info" && !slices.Contains(rules, f.Rule) {
			rules = append(rules, f.Rule)
		}
	}
	slices.Sort(rules)
	return rules
}

// withoutRemedies returns the report without its remedies. The remedies repeat the flags of the
// invocation, in which the two compared reports differ.
func (r doctorReport) withoutRemedies() doctorReport {
	r.Nodes = slices.Clone(r.Nodes)
	for i := range r.Nodes {
		r.Nodes[i].Findings = slices.Clone(r.Nodes[i].Findings)
		for j := range r.Nodes[i].Findings {
			r.Nodes[i].Findings[j].Remedy = ""
		}
	}
	return r
}

func (r doctorReport) expectLooked(t *testing.T, rules ...string) {
	t.Helper()
	for _, rule := range rules {
		if !slices.Contains(r.Nodes[0].Rules, rule) {
			t.Errorf("%s was not looked at: %+v", rule, r.Nodes[0].Skipped)
		}
	}
}

// TestDoctorOfARuntime examines a Wine node that has only the real containerd, and then the same
// node with a configuration that this containerd refuses.
func TestDoctorOfARuntime(t *testing.T) {
	t.Parallel()
	info := wineSandbox(t)
	file := nodeFile(t, credentialsOf(t, info), containerdProvisioner(t, "1.7.12"))
	ok(t, "push", "-c", file, "--accept-new-host-key")
	ok(t, "exec", "-c", file, "--", containerdExe, "--register-service", "--log-file", `C:\containerd.log`)
	ok(t, "exec", "-c", file, "--", "net", "start", "containerd")

	r := decoded[doctorReport](t, swdt(t, "doctor", "-c", file, "-o", "json"))
	r.expectLooked(t, "containerd-service", "containerd-config", "runtime-answers", "runtime-ready", "image-mismatch",
		"hns-duplicate-address", "orphan-shims", "disk-space")
	for _, found := range r.worse() {
		switch {
		case strings.HasPrefix(found, "containerd"):
			t.Errorf("found begins with %q:\n%s", "containerd", found)
		case strings.HasPrefix(found, "runtime"):
			t.Errorf("found begins with %q:\n%s", "runtime", found)
		case strings.HasPrefix(found, "hns"):
			t.Errorf("found begins with %q:\n%s", "hns", found)
		}
	}
	if !slices.Contains(r.worse(), "kubelet-service") {
		t.Errorf("there is no kubelet, and nobody says so: %+v", r.Nodes[0].Findings)
	}

	ok(t, "cp", "-c", file, textFile(t, "version = 2\n[plugins.'io.containerd.grpc.v1.cri']\nsandbox_image = 5\n"),
		`node:C:\Program Files\containerd\config.toml`)
	refused := swdt(t, "doctor", "-c", file, "--rule", "containerd-config")
	switch {
	case refused.code != 5:
		t.Errorf("a configuration that this containerd cannot read: refused.code is %v, want 5", refused.code)
	case !strings.Contains(refused.stdout, "containerd refuses"):
		t.Errorf("a configuration that this containerd cannot read: refused.stdout lacks %q:\n%s",
			"containerd refuses", refused.stdout)
	case !strings.Contains(refused.stdout, "convert 5"):
		t.Errorf("a configuration that this containerd cannot read: refused.stdout lacks %q:\n%s",
			"convert 5", refused.stdout)
	}
}

// TestDoctor examines a node that has joined a real cluster, its saved facts without
// the node, and the node after its kubelet was stopped.
func TestDoctor(t *testing.T) {
	c := clusterSandbox(t)
	file := c.joinFile(t, credentialsOf(t, c.sandboxInfo), joinWith{})
	ok(t, "join", "-c", file, "--kubeconfig", c.Kubeconfig, "--allow-reboot")
	c.expectNode(t, "wine-1", "Ready")
	// The pod network of a sandbox is only a configuration, so add a file in place of its program.
	plugin := filepath.Join(c.Prefix, "drive_c/opt/cni/bin/no-network-in-a-sandbox.exe")
	if err := os.MkdirAll(filepath.Dir(plugin), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plugin, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	facts := filepath.Join(t.TempDir(), "facts.json")
	healthy := decoded[doctorReport](t, ok(t, "doctor", "-c", file, "--kubeconfig", c.Kubeconfig, "--fail-on",
		"warning", "--save-facts", facts, "-o", "json"))
	healthy.expectLooked(t, "kubelet-service", "kubelet-flags", "kubelet-config", "kubelet-cgroups", "kubelet-endpoint",
		"kubelet-health", "kubelet-port",
		"kubelet-firewall", "kubelet-certificate", "cluster-ca", "kubelet-identity", "other-cluster", "joined-twice",
		"control-plane-reachable",
		"containerd-config", "runtime-answers", "network-ready", "runtime-handlers", "cni-binaries", "node-ready",
		"node-versions", "version-skew", "clock")
	without := decoded[doctorReport](t, ok(t, "doctor", "--facts", facts, "--fail-on", "warning", "-o", "json"))
	if diff := cmp.Diff(healthy.withoutRemedies(), without.withoutRemedies()); diff != "" {
		t.Errorf("the facts alone find something else than the node did (-node +facts):\n%s", diff)
	}

	ok(t, "exec", "-c", file, "--", "net", "stop", "kubelet")
	down := swdt(t, "doctor", "-c", file, "--kubeconfig", c.Kubeconfig, "-o", "json")
	if found := decoded[doctorReport](t, down).worse(); down.code != 5 || !slices.Contains(found, "kubelet-service") {
		t.Errorf("a node whose kubelet is stopped: exit code %d, %v", down.code, found)
	}
}
