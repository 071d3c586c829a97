//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/owners"
)

// podCluster is a real control plane and a Wine node that has joined its cluster. The node's
// containerd runs pods with the lab's shim, snapshotter and network plugin.
type podCluster struct {
	cluster
	podNode
}

// newPodCluster returns such a cluster. images are further images of its registry, see registry.
func newPodCluster(t testing.TB, images ...string) podCluster {
	t.Helper()
	return newPodClusterWith(t, networkConfig, images...)
}

// newPodClusterWith returns such a cluster with another configuration of its pod network.
func newPodClusterWith(t testing.TB, network string, images ...string) podCluster {
	t.Helper()
	c := clusterSandbox(t)
	n := podNode{sandboxInfo: c.sandboxInfo, network: network, registry: registry(t, images...)}
	n.config = c.joinFile(t, credentialsOf(t, c.sandboxInfo), joinWith{
		containerd: labContainerd(n.registry),
	})
	n.installLab(t)
	ok(t, "join", "-c", n.config, "--kubeconfig", c.Kubeconfig, "--allow-reboot")
	c.expectNode(t, "wine-1", "Ready", "containerd://1.7.12")
	return podCluster{c, n}
}

// labContainerd returns the part of a node file for a containerd 1.7 that runs the lab's pods.
func labContainerd(registry string) string {
	return `      pauseImage: ` + registry + `/pause:1
      cni: {binDirectory: 'C:\lab\cni', configDirectory: 'C:\lab\net.d'}
      config: |
        [proxy_plugins.lab]
          type = "snapshot"
          address = '\\.\pipe\lab-snapshotter'
        [proxy_plugins.lab-diff]
          type = "diff"
          address = '\\.\pipe\lab-snapshotter'
        [plugins."io.containerd.service.v1.diff-service"]
          default = ["lab-diff"]
        [plugins."io.containerd.grpc.v1.cri".containerd]
          snapshotter = "lab"
          default_runtime_name = "lab"
          [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.lab]
            runtime_type = "io.containerd.lab.v1"
`
}

// TestScheduledPod inspects a pod with several commands of swdt. The pod belongs to a Deployment, the
// real scheduler has assigned it to the node, the real kubelet has made it, and the real containerd
// runs it.
func TestScheduledPod(t *testing.T) {
	c := newPodCluster(t)
	c.needsAddress(t)
	c.apply(t, fmt.Sprintf(burnerDeployment, c.registry))
	pod := c.awaitRunningPod(t, "burner")
	t.Logf("\n%s", c.kubectl(t, "get", "pods", "-o", "wide"))

	c.expectProcesses(t, pod)
	c.expectLog(t, pod)
	c.expectSources(t, pod)
	c.expectZeros(t, pod)

	c.kubectl(t, "delete", "deployment", "burner")
	eventually(t, "the pod is gone", func() error {
		if left := c.kubectl(t, "get", "pods", "-o", "name"); left != "" {
			return fmt.Errorf("pods: %s", left)
		}
		return nil
	})
	// The runtime lists the pod's sandbox until kubelet removes the sandboxes that have ended.
	for _, pod := range c.ps(t, exitDone).Pods {
		if pod.State != "notready" || len(pod.Shims)+len(pod.Sandbox)+len(pod.Containers) > 0 {
			t.Errorf("after its removal the pod is %+v", pod)
		}
	}
}

// burnerDeployment needs no token of its account.
const burnerDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: burner, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: burner}}
  template:
    metadata: {labels: {app: burner}}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      nodeSelector: {kubernetes.io/os: windows}
      tolerations: [{key: os, value: windows, effect: NoSchedule}]
      hostNetwork: true
      securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\SYSTEM'}}
      containers:
      - name: burn
        image: %s/burn:1
        args: ["--cores", "0.5"]
`

// awaitRunningPod waits for the pod of a Deployment, and returns its name.
func (c cluster) awaitRunningPod(t *testing.T, deployment string) (name string) {
	t.Helper()
	within(t, commandLimit, "a running pod of "+deployment, func() error {
		var pods struct {
			Items []struct {
				Metadata struct{ Name string }
				Spec     struct{ NodeName string }
				Status   struct {
					Phase             string
					ContainerStatuses []struct{ Ready bool }
				}
			}
		}
		text := c.kubectl(t, "get", "pods", "-l", "app="+deployment, "-o", "json")
		if err := json.Unmarshal([]byte(text), &pods); err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("%d pods", len(pods.Items))
		}
		pod := pods.Items[0]
		wrong := ""
		switch status := pod.Status; {
		case pod.Spec.NodeName != "wine-1":
			wrong = fmt.Sprintf("it is on node %q, want wine-1", pod.Spec.NodeName)
		case status.Phase != "Running":
			wrong = fmt.Sprintf("its phase is %q, want Running", status.Phase)
		case len(status.ContainerStatuses) != 1:
			wrong = fmt.Sprintf("it has %d containers, want 1", len(status.ContainerStatuses))
		case !status.ContainerStatuses[0].Ready:
			wrong = "its container is not ready"
		}
		if wrong != "" {
			return fmt.Errorf("pod %s: %s\n%s", pod.Metadata.Name, wrong,
				c.kubectl(t, "describe", "pod", pod.Metadata.Name))
		}
		name = pod.Metadata.Name
		return nil
	})
	return name
}

// expectProcesses checks that `swdt ps` finds the processes of a pod that the API server lists.
func (c podCluster) expectProcesses(t *testing.T, pod string) {
	t.Helper()
	table := c.ps(t, exitDone)
	t.Logf("\n%s", ok(t, "ps", "-c", c.config).stdout)
	i := slices.IndexFunc(table.Pods, func(p owners.Pod) bool { return p.Path() == "default/"+pod })
	switch {
	case i < 0:
		t.Fatalf("i is %v, want at least 0", i)
	case len(table.Pods) != 1:
		t.Fatalf("table.Pods has %d elements, want 1: %v", len(table.Pods), table.Pods)
	case len(table.Orphans) > 0:
		t.Fatalf("table.Orphans is %v, want it empty", table.Orphans)
	case len(table.Gaps) > 0:
		t.Fatalf("table.Gaps is %v, want it empty", table.Gaps)
	}
	found := table.Pods[i]
	switch {
	case len(found.Shims) == 0:
		t.Error("found.Shims is empty")
	case len(found.Sandbox) == 0:
		t.Error("found.Sandbox is empty")
	case len(found.Containers) != 1:
		t.Errorf("found.Containers has %d elements, want 1: %v", len(found.Containers), found.Containers)
	case len(found.Containers[0].Processes) != 1:
		t.Errorf("found.Containers[0].Processes has %d elements, want 1: %v", len(found.Containers[0].Processes),
			found.Containers[0].Processes)
	}
	for _, name := range []string{"kubelet", "containerd"} {
		i := slices.IndexFunc(table.Services, func(s owners.Service) bool { return s.Name == name })
		if i < 0 || len(table.Services[i].Processes) == 0 {
			t.Errorf("services %+v", table.Services)
		}
	}
}

// expectLog reads the container's log by SSH, through the API server and with kubectl, and checks
// that each of them has the container's line.
func (c podCluster) expectLog(t *testing.T, pod string) {
	t.Helper()
	source := "pod/default/" + pod
	for _, via := range []string{"ssh", "api"} {
		shown := ok(t, "logs", source, "--via", via, "-c", c.config, "--kubeconfig", c.cluster.Kubeconfig).stdout
		if !strings.Contains(shown, "burning 0.5 cores") {
			t.Errorf("%s by %s: %q", source, via, shown)
		}
	}
	if said := c.kubectl(t, "logs", pod); said != "burning 0.5 cores" {
		t.Errorf("kubectl logs: %q", said)
	}
}

// expectSources checks that the rates of the three sources for one container differ by at most a
// factor of 2.
func (c podCluster) expectSources(t *testing.T, pod string) {
	t.Helper()
	rows := rowsOf(t, swdt(t, "stats", "watch", "-c", c.config, "--kubeconfig", c.cluster.Kubeconfig, "--source",
		"cri,summary,node", "--for", "40s", "-o", "json"))
	last := map[string]statsRow{}
	for _, row := range rows {
		if row.Pod != pod {
			t.Fatalf("a row of another pod: %+v", row)
		}
		last[row.Source] = row
	}
	for _, source := range []string{"cri", "summary", "node"} {
		row, there := last[source]
		if !there || row.Computed == nil {
			t.Fatalf("%s computes nothing: %+v", source, row)
		}
		if node := last["node"]; *row.Computed < *node.Computed/2 || *row.Computed > 2**node.Computed {
			t.Errorf("%s computes %.3f, the node %.3f", source, *row.Computed, *node.Computed)
		}
	}
}

// expectZeros checks that with containerd 1.7.12 the kubelet's summary, which the API server
// forwards, sometimes has a 0 for a busy container.
func (c podCluster) expectZeros(t *testing.T, pod string) {
	t.Helper()
	r := swdt(t, "stats", "watch", "--source", "summary", "--kubeconfig", c.cluster.Kubeconfig, "-n", "wine-1",
		"--callers", "1", "--for", "40s", "--fail-on", "zero")
	if r.code != exitFinding || !strings.Contains(r.stderr, "default/"+pod+"/burn") {
		t.Errorf("the summary has no zero: exit code %d", r.code)
	}
}
