//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cluster is a Wine node and the control plane beside it.
type cluster struct {
	sandboxInfo
}

// clusterSandbox starts a cluster. It needs the lab's control plane, which takes minutes to build,
// and kubelet's own ports. So tests that call clusterSandbox run only in `make e2e`.
func clusterSandbox(t testing.TB) cluster {
	t.Helper()
	if os.Getenv("SWDT_LAB_CLUSTER") != "required" {
		t.Skip("joins a real control plane: run make e2e")
	}
	for _, name := range []string{"linux/kube-apiserver", "node/kubelet-1.36.3.exe"} {
		lab(t, name)
	}
	return cluster{wineSandboxNamed(t, "e2e", "--cluster")}
}

// joinWith has the settings of one join. An empty field means the default of joinFile.
type joinWith struct {
	name, labels, patch string
	kubernetes          string // the version
	runtime             string // containerd's version
	containerd          string // lines of spec.kubernetes.containerd
	more                string // lines of spec.kubernetes
}

// joinFile writes a node file for a join with the lab's programs.
func (c cluster) joinFile(t testing.TB, credentials string, with joinWith) string {
	t.Helper()
	name := with.name
	if name == "" {
		name = "wine-1"
	}
	if with.kubernetes == "" {
		with.kubernetes = "1.36.3"
	}
	if with.runtime == "" {
		with.runtime = "1.7.12"
	}
	if with.more == "" {
		with.more = "    join: {nodeName: " + name + "}\n"
	}
	if with.containerd == "" {
		with.containerd = "      pauseImage: registry.k8s.io/pause:3.10\n"
	}
	if with.labels == "" {
		with.labels = "{}"
	}
	if with.patch == "" {
		with.patch = "{maxPods: 40, evictionHard: {imagefs.available: 1%, nodefs.available: 1%}}"
	}
	text := fmt.Sprintf(`apiVersion: windows.k8s.io/v1alpha1
kind: Node
metadata:
  name: %s
spec:
  credentials:
%s  kubernetes:
    version: %s
    containerd:
      version: %s
      source: %s
%s    kubelet:
      source: %s
      kubeadmSource: %s
      logRunnerSource: %s
      extraArgs: {v: "2"}
      configPatch: %s
      nodeLabels: %s
      registerWithTaints: ["os=windows:NoSchedule"]
%s`, name, credentials, with.kubernetes, with.runtime, lab(t, "containerd-"+with.runtime+".exe"), with.containerd,
		lab(t, "node/kubelet-"+with.kubernetes+".exe"), lab(t, "node/kubeadm-"+with.kubernetes+".exe"),
		lab(t, "node/kube-log-runner-1.36.3.exe"), with.patch, with.labels, with.more)
	path := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// withNodeName adds the Node's name to a node file of provisioners.
func withNodeName(t *testing.T, file, name string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "  kubernetes:\n", "  kubernetes:\n    join: {nodeName: "+name+"}\n",
		1))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// kubectl runs the lab's kubectl.
func (c cluster) kubectl(t testing.TB, args ...string) string {
	t.Helper()
	return strings.TrimSpace(run(t, lab(t, "linux/kubectl"),
		append([]string{"--kubeconfig", c.Kubeconfig}, args...)...))
}

func (c cluster) apply(t *testing.T, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "apply", "-f", file)
}

// awaitPod waits for a pod whose name begins with prefix, and returns its name for kubectl.
func (c cluster) awaitPod(t *testing.T, prefix string) (pod string) {
	t.Helper()
	eventually(t, "a pod "+prefix, func() error {
		pod = c.kubectl(t, "get", "pods", "-o", "name")
		if !strings.HasPrefix(pod, "pod/"+prefix) || strings.Contains(pod, "\n") {
			return fmt.Errorf("pods: %q", pod)
		}
		return nil
	})
	return pod
}

// expectNode waits until `kubectl get nodes -o wide` has a line for the node with all of these texts.
func (c cluster) expectNode(t testing.TB, name string, texts ...string) {
	t.Helper()
	eventually(t, "node "+name, func() error {
		// kubeadm does not wait until the kubelet has registered the node.
		line := c.kubectl(t, "get", "nodes", name, "-o", "wide", "--no-headers", "--ignore-not-found")
		if line == "" {
			return errors.New("there is none")
		}
		for _, text := range texts {
			if !strings.Contains(line, text) {
				return fmt.Errorf("no %q in: %s", text, line)
			}
		}
		if len(texts) > 0 && texts[0] == "Ready" && strings.Contains(line, "NotReady") {
			return fmt.Errorf("not Ready: %s", line)
		}
		return nil
	})
	t.Log(c.kubectl(t, "get", "nodes", name, "-o", "wide"))
}

// needsAddress fails the test if kubelet reports no address, so that the API server cannot reach
// kubelet. It does not skip the test, since a required test that checks nothing must not count as
// passed.
func (c cluster) needsAddress(t testing.TB) {
	t.Helper()
	if c.kubectl(t, "get", "node", "wine-1", "-o", "jsonpath={.status.addresses}") == "" {
		t.Fatal("this machine has loopback alone, which no API server connects to, so kubelet has no address to " +
			"report: give it another interface with a default route (a veth pair in a network namespace will do)")
	}
}

func (c cluster) expectNoTokens(t *testing.T) {
	t.Helper()
	if tokens := c.kubectl(t, "get", "secrets", "-n", "kube-system", "--field-selector",
		"type=bootstrap.kubernetes.io/token", "-o", "name"); tokens != "" {
		t.Errorf("tokens are left: %s", tokens)
	}
}

// stepsReport has the promised fields of `swdt join -o json`.
type stepsReport struct {
	Nodes []struct {
		Name, Result, Message string
		Steps                 []struct{ Name, Change, State, Message string }
	}
	Summary struct{ Changed, Unchanged, Failed int }
}

func (r stepsReport) changed() []string {
	var names []string
	for _, n := range r.Nodes {
		for _, step := range n.Steps {
			if step.State == "changed" {
				names = append(names, step.Name)
			}
		}
	}
	return names
}
