package doctor_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	cluster_simulated "github.com/swdt-dev/swdt/internal/sandbox/apiserver"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// controlPlane returns a cluster with the given objects.
func controlPlane(t *testing.T, objects string) (*cluster_simulated.Cluster, *cluster.Cluster) {
	t.Helper()
	control, err := cluster_simulated.Start(cluster_simulated.Options{Version: "v1.28.9"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(control.Close)
	if err := control.Plant(objects); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := control.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	opened, err := cluster.Open(cluster.Options{Kubeconfig: kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	return control, opened
}

// wellNode returns a Node object as the kubelet of a simulated machine reports it.
const wellNode = `
apiVersion: v1
kind: Node
metadata: {name: win-1, labels: {kubernetes.io/os: windows}}
status:
  nodeInfo: {kubeletVersion: v1.28.4, kernelVersion: 10.0.20348.2849, operatingSystem: windows}
  conditions: [{type: Ready, status: "True"}]
`

const faultyCluster = `
apiVersion: v1
kind: Node
metadata: {name: win-1, labels: {kubernetes.io/os: windows}}
spec: {unschedulable: true}
status:
  nodeInfo: {kubeletVersion: v1.27.0, kernelVersion: 10.0.17763.1, operatingSystem: windows}
  conditions:
  - {type: Ready, status: "False", reason: KubeletNotReady, message: container runtime is down}
  - {type: DiskPressure, status: "True", reason: KubeletHasDiskPressure}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: windows-2022}
handler: runhcs-wcow-unknown
scheduling: {nodeSelector: {kubernetes.io/os: windows}}
---
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: stuck}
spec: {nodeName: win-1, nodeSelector: {kubernetes.io/os: linux}, containers: [{name: app, image: example}]}
status:
  phase: Pending
  containerStatuses: [{name: app, restartCount: 0, state: {waiting: {reason: ErrImagePull, message: no such image}}}]
---
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: elsewhere}
spec: {nodeName: other, containers: [{name: app, image: example}]}
status: {phase: Pending}
`

// Rules find faults in the API server's objects about a node.
func TestTheClustersSide(t *testing.T) {
	control, opened := controlPlane(t, faultyCluster)
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	n.Put(`C:\Program Files\containerd\config.toml`, []byte(`version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runhcs-wcow-process]
  runtime_type = "io.containerd.runhcs.v1"
`))
	control.SetVersion("v1.27.3")
	facts, err := doctor.Gather(t.Context(), doctor.Sources{Node: n.Node, Cluster: opened})
	if err != nil {
		t.Fatal(err)
	}
	facts.Taken = facts.Taken.Add(time.Hour) // pods may wait for a while
	r := examine(t, facts)
	for rule, words := range map[string]string{
		"node-ready": "container runtime is down", "node-pressure": "DiskPressure", "node-cordoned": "uncordon win-1",
		"node-versions": "v1.27.0", "version-skew": "newer than the API server",
		"runtime-handlers": "runhcs-wcow-unknown",
		"pods-waiting":     "ErrImagePull: no such image", "pod-os": "default/stuck",
	} {
		if !slices.ContainsFunc(r.Findings, func(f finding.Fault) bool {
			return f.Rule == rule && strings.Contains(f.What+"\n"+f.Evidence+"\n"+f.Remedy, words)
		}) {
			t.Errorf("%s does not find %q: %+v", rule, words, r.Findings)
		}
	}
	if slices.ContainsFunc(r.Findings, func(f finding.Fault) bool { return strings.Contains(f.What, "elsewhere") }) {
		t.Errorf("another node's pod is found: %+v", r.Findings)
	}
}

func TestAWellNodeOfACluster(t *testing.T) {
	_, opened := controlPlane(t, wellNode)
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	facts, err := doctor.Gather(t.Context(), doctor.Sources{Node: n.Node, Cluster: opened})
	if err != nil {
		t.Fatal(err)
	}
	r := examine(t, facts)
	for _, rule := range []string{"api-server", "clock", "node-registered", "node-ready", "node-versions",
		"version-skew", "runtime-handlers", "pods-waiting", "joined-twice", "kube-proxy"} {
		if !slices.Contains(r.Rules, rule) {
			t.Errorf("%s was not looked at: %+v", rule, r.Skipped)
		}
		if slices.ContainsFunc(r.Findings,
			func(f finding.Fault) bool { return f.Rule == rule && f.Severity != finding.Info }) {
			t.Errorf("%s found something: %+v", rule, r.Findings)
		}
	}
}

// If the cluster does not answer, its facts are unknown, each with the reason.
func TestAClusterThatDoesNotAnswer(t *testing.T) {
	control, opened := controlPlane(t, wellNode)
	control.Close()
	n := nodetest.Start(t, "sample", simulated.Options{Hostname: "WIN-1", Preset: simulated.Node})
	facts, err := doctor.Gather(t.Context(), doctor.Sources{Node: n.Node, Cluster: opened})
	if err != nil {
		t.Fatal(err)
	}
	r := examine(t, facts)
	if !slices.ContainsFunc(r.Findings, func(f finding.Fault) bool {
		return f.Rule == "api-server" && strings.Contains(f.What, "does not answer")
	}) {
		t.Errorf("no finding reports that it does not answer: %+v", r.Findings)
	}
	for _, rule := range []string{"node-ready", "clock", "pods-waiting", "runtime-handlers"} {
		if !slices.ContainsFunc(r.Skipped,
			func(s doctor.Skipped) bool { return s.Rule == rule && s.Why == "the API server does not answer" }) {
			t.Errorf("%s: %+v", rule, r.Skipped)
		}
	}
}
