//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestUpWithAnExistingCluster sets a Wine node up and joins it to a real control plane that swdt's up
// has not made, and removes the node again: the objects of the cluster are as before.
func TestUpWithAnExistingCluster(t *testing.T) {
	c := clusterSandbox(t)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "admin.conf")
	access, err := os.ReadFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "cluster.yaml")
	document := "apiVersion: windows.k8s.io/v1alpha1\nkind: Cluster\nmetadata: {name: mine}\n" +
		"spec: {controlPlane: {existing: {kubeconfig: admin.conf}}}\n"
	for path, text := range map[string][]byte{kubeconfig: access, file: []byte(document)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	node := c.joinFile(t, credentialsOf(t, c.sandboxInfo), joinWith{
		more: "    join: {nodeName: wine-1}\n  setup:\n    environment: {STAGE: up}\n",
	})
	files := []string{"-c", file, "-c", node}
	c.keepsTheNetworkOfOthers(t, document, folder)
	before := c.settled(t)

	ok(t, append([]string{"up", "--dry-run"}, files...)...)
	up := append([]string{"up", "--allow-reboot", "-o", "json"}, files...)
	made := decoded[upReport](t, ok(t, up...))
	want := []string{"cluster unchanged", "setup wine-1 changed", "join wine-1 changed"}
	if diff := cmp.Diff(want, made.results()); diff != "" {
		t.Errorf("up (-want +got):\n%s", diff)
	}
	c.expectNode(t, "wine-1", "Ready", "v1.36.3", "Windows Server 2022 Datacenter")
	again := decoded[upReport](t, ok(t, up...))
	want = []string{"cluster unchanged", "setup wine-1 unchanged", "join wine-1 unchanged"}
	if diff := cmp.Diff(want, again.results()); diff != "" {
		t.Errorf("a second up (-want +got):\n%s", diff)
	}
	t.Logf("up took %.1f s, a second one %.1f s", made.Seconds, again.Seconds)

	down := append([]string{"down", "--yes", "-o", "json"}, files...)
	removed := decoded[upReport](t, ok(t, down...))
	if diff := cmp.Diff([]string{"join wine-1 changed"}, removed.results()); diff != "" {
		t.Errorf("down (-want +got):\n%s", diff)
	}
	kept := []string{
		"cluster mine, which swdt did not make", "the settings of spec.setup on wine-1",
		`C:\var\log\containerd on wine-1: it is not empty`, `C:\var\log\kubelet on wine-1: it is not empty`,
	}
	if diff := cmp.Diff(kept, removed.Kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	within(t, time.Minute, "the objects are as before", func() error { // the garbage collector removes the Node's
		if diff := cmp.Diff(before, c.objects(t)); diff != "" {
			return errors.New("(-before +after):\n" + diff)
		}
		return nil
	})
	after, err := os.ReadFile(kubeconfig)
	if err != nil || string(after) != string(access) {
		t.Errorf("the kubeconfig has changed: %v", err)
	}
}

// flannelOfOthers is a flannel that kubectl has applied, with the settings of Linux alone.
const flannelOfOthers = `apiVersion: v1
kind: Namespace
metadata: {name: kube-flannel}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-flannel-cfg, namespace: kube-flannel}
data:
  net-conf.json: '{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}'
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-flannel-ds, namespace: kube-flannel}
spec:
  selector: {matchLabels: {app: flannel}}
  template:
    metadata: {labels: {app: flannel}}
    spec: {containers: [{name: kube-flannel, image: "ghcr.io/flannel-io/flannel:v0.28.10"}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-flannel-ds-windows, namespace: kube-flannel}
spec:
  selector: {matchLabels: {app: flannel-windows}}
  template:
    metadata: {labels: {app: flannel-windows}}
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers: [{name: kube-flannel, image: "registry.example/flannel:v0.28.10"}]
`

// keepsTheNetworkOfOthers runs the stage network on a cluster with a pod network that kubectl has
// applied: swdt shows the difference, and changes nothing.
func (c cluster) keepsTheNetworkOfOthers(t *testing.T, document, folder string) {
	t.Helper()
	c.apply(t, flannelOfOthers)
	before := c.settled(t)
	for _, wrong := range []struct {
		network, want string
		code          int
	}{
		{"plugin: calico", "spec.network.plugin: is calico, but the cluster has the pod network flannel already", 2},
		{"plugin: flannel", `conflict with "kubectl-client-side-apply"`, 1},
		{
			"plugin: flannel, podSubnet: 10.9.0.0/16",
			"is 10.9.0.0/16, but the addresses of the existing cluster's pods are", 2,
		},
	} {
		file := filepath.Join(folder, "network.yaml")
		text := strings.Replace(document, "}}}", "}}, network: {"+wrong.network+"}}", 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := swdt(t, "up", "--only", "cluster,network", "-c", file)
		if r.code != wrong.code || !strings.Contains(r.stderr, wrong.want) {
			t.Errorf("%s: want exit code %d and %q, got %s", wrong.network, wrong.code, wrong.want, r)
		}
	}
	if diff := cmp.Diff(before, c.objects(t)); diff != "" {
		t.Errorf("a refused pod network (-before +after):\n%s", diff)
	}
	c.kubectl(t, "delete", "namespace", "kube-flannel")
}

// settled returns the objects of a cluster once its controllers have made theirs: two dumps are equal.
func (c cluster) settled(t *testing.T) (all map[string]string) {
	t.Helper()
	within(t, time.Minute, "the objects of a new cluster stay as they are", func() error {
		last := all
		all = c.objects(t)
		if diff := cmp.Diff(last, all); diff != "" {
			return errors.New("the last change:\n" + diff)
		}
		return nil
	})
	return all
}

// objects dumps all objects of a cluster, by kind, namespace and name, without their status and the
// API server's own book-keeping. It leaves out events, leases and signed requests for certificates, which
// the cluster itself removes after a time, and kinds for which kubectl prints a warning.
func (c cluster) objects(t *testing.T) map[string]string {
	t.Helper()
	kinds := slices.DeleteFunc(strings.Fields(c.kubectl(t, "api-resources", "--verbs=list", "-o", "name")),
		func(kind string) bool {
			name, _, _ := strings.Cut(kind, ".")
			return slices.Contains([]string{
				"events", "leases", "certificatesigningrequests", "componentstatuses", "endpoints",
			}, name)
		})
	var list struct {
		Items []map[string]any
	}
	text := c.kubectl(t, "get", strings.Join(kinds, ","), "--all-namespaces", "-o", "json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, object := range list.Items {
		delete(object, "status")
		metadata, _ := object["metadata"].(map[string]any)
		for _, field := range []string{"resourceVersion", "managedFields"} {
			delete(metadata, field)
		}
		rest, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		namespace, _ := metadata["namespace"].(string)
		kind, _ := object["kind"].(string)
		name, _ := metadata["name"].(string)
		all[kind+" "+namespace+"/"+name] = string(rest)
	}
	if len(all) == 0 {
		t.Fatal("the dump has no object")
	}
	return all
}
