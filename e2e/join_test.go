//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestJoin covers the life of a node: a bare machine joins a real control plane through Debian's
// sshd, receives another containerd and kubelet, and leaves the cluster.
func TestJoin(t *testing.T) {
	c := clusterSandbox(t)
	server := opensshFor(t, c.sandboxInfo)
	file := c.joinFile(t, server.credentials(), joinWith{})
	before := machineOf(t, c.sandboxInfo, file)

	preflight := ok(t, "join", "--preflight", "-c", file, "--kubeconfig", c.Kubeconfig)
	if strings.Contains(preflight.stdout, "✗") {
		t.Error("preflight finds an error on a healthy machine")
	}
	waits := swdt(t, "join", "-c", file, "--kubeconfig", c.Kubeconfig)
	if waits.code != 1 || !strings.Contains(waits.stderr, "--allow-reboot") {
		t.Errorf("a feature needs a reboot that nobody has allowed: %v", waits)
	}
	ok(t, "join", "-c", file, "--kubeconfig", c.Kubeconfig, "--allow-reboot")
	c.expectNode(t, "wine-1", "Ready", "v1.36.3", "Windows Server 2022 Datacenter", "10.0.20348.2849",
		"containerd://1.7.12")
	c.expectNoTokens(t)

	again := decoded[stepsReport](t, ok(t, "join", "-c", file, "--kubeconfig", c.Kubeconfig, "-o", "json"))
	if again.Summary.Unchanged != 1 {
		t.Errorf("joining again changes something: %+v", again)
	}

	changed := c.joinFile(t, server.credentials(), joinWith{labels: "{example.com/rack: r1}"})
	steps := decoded[stepsReport](t, ok(t, "join", "-c", changed, "--kubeconfig", c.Kubeconfig, "-o", "json"))
	t.Logf("one more label: %v", steps.changed())
	if got := c.kubectl(t, "get", "node", "wine-1", "-o",
		`jsonpath={.metadata.labels.example\.com/rack}`); got != "r1" {
		t.Errorf("the label is %q", got)
	}
	if slices.Contains(steps.changed(), "join") || slices.Contains(steps.changed(), "containerd files") {
		t.Errorf("for one more label these steps changed something: %v", steps.changed())
	}

	c.exchanges(t, c.joinFile(t, server.credentials(), joinWith{labels: "{example.com/rack: r1}", runtime: "2.4.2"}),
		"2.4.2")
	c.exchanges(t, changed, "1.7.12") // 1.7.12 does not start with the configuration of 2.4.2
	c.pushes(t, server.credentials())

	ok(t, "reset", "--yes", "-c", file, "--kubeconfig", c.Kubeconfig, "--delete-node")
	if nodes := c.kubectl(t, "get", "nodes", "-o", "name"); nodes != "" {
		t.Errorf("the cluster still has %s", nodes)
	}
	after := machineOf(t, c.sandboxInfo, file)
	before.expectSame(t, after)
	nothing := ok(t, "reset", "--yes", "-c", file, "--no-drain")
	if !strings.Contains(nothing.stdout, "nothing to do") {
		t.Error("a second reset finds something to do")
	}
}

// exchanges joins with a containerd of another generation, and checks that a single restart replaces
// containerd and its configuration.
func (c cluster) exchanges(t *testing.T, file, version string) {
	t.Helper()
	before := c.containerdStarts(t)
	steps := decoded[stepsReport](t, ok(t, "join", "-c", file, "--kubeconfig", c.Kubeconfig, "-o", "json"))
	t.Logf("containerd %s: %v", version, steps.changed())
	c.expectNode(t, "wine-1", "Ready", "containerd://"+version)
	if slices.Contains(steps.changed(), "containerd config") || slices.Contains(steps.changed(), "containerd service") {
		t.Errorf("containerd %s: its configuration came by itself: %v", version, steps.changed())
	}
	if started := c.containerdStarts(t) - before; started != 1 {
		t.Errorf("containerd was started %d times to be %s", started, version)
	}
}

// containerdStarts counts the starts in containerd's log.
func (c cluster) containerdStarts(t *testing.T) int {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(c.Prefix, "drive_c", "var", "log", "containerd", "containerd.log"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(log), `msg="starting containerd"`)
}

// pushes replaces containerd and kubelet of a node that serves a cluster.
func (c cluster) pushes(t *testing.T, credentials string) {
	t.Helper()
	push := nodeFile(t, credentials, containerdProvisioner(t, "1.7.11")+
		provisioner("kubelet", "v1.36.3-edited", lab(t, "node/kubelet-1.36.3-edited.exe"), kubeletExe, ""))
	push = withNodeName(t, push, "wine-1")

	// If a disruption budget forbids eviction, swdt changes nothing and ends in time. The budget's
	// pod would be Pending for ever, since Wine runs no container, and a pending pod may always be
	// evicted. So the test stops kubelet, and itself reports the pod as running to the API server.
	ok(t, "exec", "-c", push, "--", "net", "stop", "kubelet")
	c.apply(t, stubbornPod)
	pod := c.awaitPod(t, "stubborn")
	c.kubectl(t, "patch", pod, "--subresource=status", "--type=merge", "-p",
		`{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}`)
	r := swdt(t, "push", "-c", push, "--kubeconfig", c.Kubeconfig, "--drain", "--drain-timeout", "8s")
	if r.code != 1 || !strings.Contains(r.stderr, "stubborn") {
		t.Errorf("a budget that forbids eviction: %v", r)
	}
	c.expectNode(t, "wine-1", "Ready", "v1.36.3", "containerd://1.7.12")
	if got := c.kubectl(t, "get", "node", "wine-1", "-o", "jsonpath={.spec.unschedulable}"); got != "" {
		t.Errorf("the node was left cordoned: %q", got)
	}
	c.kubectl(t, "delete", "poddisruptionbudget", "stubborn")
	ok(t, "exec", "-c", push, "--", "net", "start", "kubelet")

	pushed := decoded[report](t, ok(t, "push", "-c", push, "--kubeconfig", c.Kubeconfig, "--drain", "-o", "json"))
	if pushed.Summary.Changed != 1 {
		t.Errorf("pushed: %+v", pushed)
	}
	c.expectNode(t, "wine-1", "Ready", "v1.36.3-edited", "containerd://1.7.11")
	if got := c.kubectl(t, "get", "node", "wine-1", "-o", "jsonpath={.spec.unschedulable}"); got != "" {
		t.Errorf("the node is still cordoned: %q", got)
	}
	c.kubectl(t, "delete", "replicaset", "stubborn", "--wait=false")
	c.kubectl(t, "delete", "pods", "--all", "--force", "--grace-period=0")
}

// stubbornPod has a ReplicaSet with a pod on the node, and a disruption budget that forbids the
// eviction of this pod.
const stubbornPod = `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: stubborn, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: stubborn}}
  template:
    metadata: {labels: {app: stubborn}}
    spec:
      nodeName: wine-1
      terminationGracePeriodSeconds: 0
      containers: [{name: c, image: example.invalid/none:1}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: stubborn, namespace: default}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: stubborn}}
`

// TestTwoNodesJoinAtOnce joins two machines to one cluster with one command.
func TestTwoNodesJoinAtOnce(t *testing.T) {
	c := clusterSandbox(t)
	second := wineSandboxNamed(t, "second")
	// Both machines share the network of this machine, so the second kubelet has other ports.
	one := c.joinFile(t, credentialsOf(t, c.sandboxInfo), joinWith{})
	two := c.joinFile(t, credentialsOf(t, second), joinWith{
		name: "wine-2", more: "    join: {nodeName: wine-2, ignorePreflightErrors: [ports, Port-10250]}\n",
		patch: "{port: 10350, healthzPort: 10348}",
	})
	ok(t, "join", "-c", one, "-c", two, "--kubeconfig", c.Kubeconfig, "--allow-reboot")
	c.expectNode(t, "wine-1", "Ready")
	c.expectNode(t, "wine-2", "Ready")
	c.expectNoTokens(t)
}

// TestInterruptedJoin kills the agent in five steps of a join, and joins again.
func TestInterruptedJoin(t *testing.T) {
	c := clusterSandbox(t)
	credentials := credentialsOf(t, c.sandboxInfo)
	file := c.joinFile(t, credentials, joinWith{})
	for _, step := range []string{"containerd files", "containerd config", "containerd service",
		"kubelet service", "join"} {
		t.Run(step, func(t *testing.T) {
			c.joinUntil(t, file, step)
			ok(t, "join", "-c", file, "--kubeconfig", c.Kubeconfig, "--allow-reboot")
			c.expectNode(t, "wine-1", "Ready")
			c.expectNoTokens(t)
			again := decoded[stepsReport](t, ok(t, "join", "-c", file, "--kubeconfig", c.Kubeconfig, "-o", "json"))
			if again.Summary.Unchanged != 1 {
				t.Errorf("after an interrupted join and a whole one something is left to change: %v", again.changed())
			}
			ok(t, "reset", "--yes", "-c", file, "--kubeconfig", c.Kubeconfig, "--no-drain", "--delete-node")
		})
	}
}

// joinUntil joins, and kills swdt and the node's agent when the step begins.
func (c cluster) joinUntil(t *testing.T, file, step string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, environment(t, "SWDT_BIN"), "join", "-c", file, "--kubeconfig",
		c.Kubeconfig, "--allow-reboot")
	story := &watchedStory{text: step + ": ", reached: make(chan struct{})}
	cmd.Stderr = story
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-story.reached:
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-ended
	case err := <-ended:
		t.Fatalf("the join ended before %s: %v\n%s", step, err, story.all.String())
	}
	for _, pid := range processesOf(t, c.Prefix, agentProcess) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // the agent may have ended with its session
	}
}

// watchedStory is a writer that reports when a text has been written.
type watchedStory struct {
	text    string
	reached chan struct{}
	all     strings.Builder
	done    bool
}

func (w *watchedStory) Write(p []byte) (int, error) {
	w.all.Write(p)
	if !w.done && strings.Contains(w.all.String(), w.text) {
		w.done = true
		close(w.reached)
	}
	return len(p), nil
}
