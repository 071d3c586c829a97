//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestStuckPod makes a pod that cannot start, since the program of the pod network is missing. The
// doctor reports the missing program while the pod still waits. When the program is back, the pod
// runs.
func TestStuckPod(t *testing.T) {
	c := newPodCluster(t)
	const program, away = `C:\lab\cni\lab-network.exe`, `C:\lab\lab-network.exe`
	c.exec(t, "cmd", "/c", "move", program, away)
	c.apply(t, fmt.Sprintf(ordinaryDeployment, c.registry))
	eventually(t, "the pod is stuck", func() error {
		events := c.kubectl(t, "get", "events", "--field-selector", "reason=FailedCreatePodSandBox", "-o",
			"jsonpath={.items[*].message}")
		if !strings.Contains(events, "lab-network") {
			return errors.New(c.kubectl(t, "describe", "pods"))
		}
		return nil
	})
	t.Logf("\n%s", c.kubectl(t, "get", "pods", "-o", "wide"))

	r := swdt(t, "doctor", "-c", c.config, "--kubeconfig", c.cluster.Kubeconfig)
	if r.code != exitFinding || !strings.Contains(r.stdout, "there is no lab-network.exe") {
		t.Errorf("the doctor does not see it: %v", r)
	}
	log := ok(t, "logs", "kubelet", "--grep", "web-.*lab-network", "--tail", "1", "-c", c.config)
	if log.stdout == "" {
		t.Error("kubelet's log does not say why")
	}

	c.exec(t, "cmd", "/c", "move", away, program)
	pod := c.awaitRunningPod(t, "web")
	if address := c.kubectl(t, "get", "pod", pod, "-o", "jsonpath={.status.podIP}"); !strings.HasPrefix(
		address, "10.244.") {
		t.Errorf("the pod's address is %q", address)
	}
	ok(t, "doctor", "--rule", "cni-binaries", "-c", c.config)
	c.expectKubeletRead(t)
}

// expectKubeletRead checks that a dump has the goroutines of the real kubelet, from the API server, and that none of them waits.
func (c podCluster) expectKubeletRead(t *testing.T) {
	t.Helper()
	report, r := c.dump(t, "--kubeconfig", c.cluster.Kubeconfig)
	for _, p := range report.Nodes[0].Processes {
		if p.Kind == "kubelet" && (p.Source != "pprof" || p.Error != "" || p.Goroutines < 50) {
			t.Errorf("kubelet: %+v", p)
		}
	}
	if report.Nodes[0].Verdict != "nothing waits" || !strings.Contains(r.stdout, `"kind": "kubelet"`) {
		t.Errorf("%s: %+v", report.Nodes[0].Verdict, report.Nodes[0].Waits)
	}
	t.Logf("%s", swdt(t, "diag", "dump", "-c", c.config, "--kubeconfig", c.cluster.Kubeconfig).stdout)
}

// ordinaryDeployment has a pod that does not share the node's network.
const ordinaryDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      nodeSelector: {kubernetes.io/os: windows}
      tolerations: [{key: os, value: windows, effect: NoSchedule}]
      containers:
      - name: burn
        image: %s/burn:1
        args: ["--cores", "0"]
`
