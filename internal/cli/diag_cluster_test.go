package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/diag"
	"github.com/swdt-dev/swdt/internal/inspect/hns/hnstest"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	cluster_simulated "github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// ofTwoNodes are a cluster's objects about win-node, which is the name that a simulated
// machine reports, and about gone, which cannot be reached.
const ofTwoNodes = `
apiVersion: v1
kind: Node
metadata:
  name: win-node
  labels: {kubernetes.io/os: windows}
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"data":"as-applied"}'
status:
  nodeInfo: {kubeletVersion: v1.27.0, osImage: Windows Server 2022 Datacenter, kernelVersion: 10.0.20348.2849}
  conditions: [{type: Ready, status: "False", reason: KubeletNotReady, message: the runtime is down}]
---
apiVersion: v1
kind: Node
metadata: {name: gone, labels: {kubernetes.io/os: windows}}
status:
  conditions:
  - {type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: windows-2022}
handler: runhcs-wcow-process
scheduling: {nodeSelector: {kubernetes.io/os: windows}}
---
apiVersion: v1
kind: Secret
metadata: {namespace: default, name: credentials}
stringData: {whatever: planted-in-a-secret}
---
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: web}
spec:
  nodeName: win-node
  automountServiceAccountToken: false
  containers:
  - name: app
    image: corp-registry.example.com/web:1
    args: [--db-password=planted-in-an-argument, --token, planted-in-the-next-argument]
    env: [{name: ORDINARY, value: an-ordinary-value}, {name: API_TOKEN, value: planted-in-the-environment}]
status:
  phase: Pending
  containerStatuses: [{name: app, restartCount: 3, state: {waiting: {reason: ErrImagePull, message: no such image}}}]
---
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: crashes}
spec: {nodeName: win-node, containers: [{name: app, image: example.com/crashes:1}]}
status:
  phase: Running
  containerStatuses:
  - name: app
    restartCount: 7
    state:
      waiting:
        reason: CrashLoopBackOff
        message: "get https://me:planted-in-an-address@corp-registry.example.com/v2"
---
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: elsewhere}
spec: {nodeName: other, containers: [{name: app, image: example.com/elsewhere:1}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: default, name: named-by-the-cluster}
spec: {clusterIP: 10.96.0.10, ports: [{port: 53, protocol: UDP}]}
---
apiVersion: v1
kind: Event
metadata: {namespace: default, name: web.1}
involvedObject: {kind: Pod, namespace: default, name: web}
type: Warning
reason: Failed
count: 7
message: 'pull with password=planted-in-an-event failed'
lastTimestamp: "2026-11-20T12:00:00Z"
`

// With a kubeconfig, the bundle has the cluster's objects about each node, also about a
// node that cannot be reached. It has no secrets.
func TestABundleHasTheClustersSide(t *testing.T) {
	w, machines, unplugs := diagnosed(t, "win", "gone")
	unplugs["gone"]()
	for kind, documents := range hnstest.Calico().Documents() {
		for i, document := range documents {
			machines["win"].WriteFile(fmt.Sprintf(`%s\%s\%d.json`, simulated.HNSFolder, kind, i), document)
		}
	}
	control, err := cluster_simulated.Start(cluster_simulated.Options{Version: "v1.27.3", NoPodNetwork: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(control.Close)
	if err := control.Plant(ofTwoNodes); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(w.folder, "admin.conf")
	if err := control.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	story := &lines{}
	code, stdout := w.swdt(t.Context(), story, "diag", "--profile", "network", "--kubeconfig", kubeconfig, "--out",
		w.bundle(), "--redact", "corp-*")
	if code != 3 { // from the node that cannot be reached
		t.Fatalf("exit code %d\n%s\n%s", code, stdout, story)
	}
	files := unpacked(t, w.bundle())
	for name, words := range map[string][]string{
		"nodes/win/tables/cluster-node.txt":   {"v1.27.0", "KubeletNotReady: the runtime is down"},
		"nodes/win/tables/cluster-pods.txt":   {"default/web", "0/1", "app: ErrImagePull: no such image"},
		"nodes/win/tables/cluster-pods.json":  {"an-ordinary-value", "--db-password=REDACTED"},
		"nodes/win/tables/cluster-events.txt": {"2026-11-20T12:00:00Z", "pod default/web", "7"},
		"nodes/win/tables/cluster-runtimeclasses.txt": {"windows-2022", "runhcs-wcow-process",
			"kubernetes.io/os=windows"},
		"nodes/win/tables/doctor.txt": {"node-ready", "version-skew", "pods-restarting"},
		"manifest.json": {"pod default/crashes has exited 7 times",
			"CrashLoopBackOff: get https://me:REDACTED"},
		"nodes/win/tables/hns-loadbalancers.txt": {"default/named-by-the-cluster"},
		"nodes/gone/tables/cluster-node.txt":     {"Kubelet stopped posting node status."},
	} {
		for _, word := range words {
			if !strings.Contains(string(files[name]), word) {
				t.Errorf("%s does not have %q:\n%.800s", name, word, files[name])
			}
		}
	}
	for name, content := range files {
		if path.Ext(name) == ".json" && !json.Valid(content) {
			t.Errorf("%s is no JSON any more:\n%.2000s", name, content)
		}
		for _, not := range []string{"planted-in", "elsewhere", "as-applied", "managedFields", "corp-registry"} {
			if bytes.Contains(content, []byte(not)) {
				t.Errorf("%q is in %s", not, name)
			}
		}
	}
	bundle, err := diag.Open(w.bundle())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range bundle.Manifest.Nodes {
		for _, c := range n.Collectors {
			if c.Name == "cluster" && c.Result != diag.Done {
				t.Errorf("%s: the cluster's side is %s: %s", n.Name, c.Result, c.Error)
			}
		}
	}
}

// Without a kubeconfig the bundle lacks these objects, which is not a failure.
func TestABundleWithoutACluster(t *testing.T) {
	w, _, _ := diagnosed(t, "win")
	if code, out := w.swdt(t.Context(), &lines{}, "diag", "--out", w.bundle()); code != 0 ||
		!strings.Contains(out, "whole") {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	code, out := w.swdt(t.Context(), &lines{}, "diag", "show", w.bundle(), "win")
	if code != 0 || !strings.Contains(out, "no cluster to ask: set --kubeconfig") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	story := &lines{}
	if code, _ := w.swdt(t.Context(), story, "diag", "--out", w.bundle(), "--kubeconfig",
		filepath.Join(w.folder, "missing.conf")); code != 2 {
		t.Errorf("a kubeconfig that is not there: exit code %d\n%s", code, story)
	}
}
