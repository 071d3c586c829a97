package objectfix_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/cluster/upgradelive"
	"github.com/swdt-dev/swdt/internal/join/objectfix"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane/controlplanetest"
)

// cluster is a real API server of Kubernetes 1.36 with objects of kube-proxy.
type liveCluster struct {
	*cluster.Cluster
	t *testing.T
}

// The tests share one control plane, since its start takes most of their time.
func TestLive(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{})
	c, err := cluster.Open(cluster.Options{Kubeconfig: plane.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	live := func(t *testing.T) *liveCluster { return &liveCluster{c, t} }
	t.Run("conflict and force", func(t *testing.T) { conflicts(live(t)) })
	t.Run("second fix", func(t *testing.T) { secondFix(live(t)) })
	t.Run("changed meanwhile", func(t *testing.T) { changedMeanwhile(live(t)) })
}

// resource returns the client of a kind.
func (c *liveCluster) resource(kind string) dynamic.ResourceInterface {
	r := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if kind == "DaemonSet" {
		r = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	}
	return c.Dynamic().Resource(r).Namespace(metav1.NamespaceSystem)
}

// create creates an object of kube-system, as another tool.
func (c *liveCluster) create(manager, text string) {
	c.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.resource(o.GetKind()).Create(c.t.Context(), o, metav1.CreateOptions{FieldManager: manager}); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = c.resource(o.GetKind()).Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}) })
}

func (c *liveCluster) get(kind, name string) *unstructured.Unstructured {
	c.t.Helper()
	o, err := c.resource(kind).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return o
}

// plan reads the cluster as `swdt upgrade check` does, and plans the removals for 1.38. left are the rules of the findings that
// stay.
func (c *liveCluster) plan(force bool) (fix *objectfix.Fix, left []string) {
	c.t.Helper()
	table, err := kubesettings.Load()
	if err != nil {
		c.t.Fatal(err)
	}
	r := upgradecheck.NewReader(table)
	if err := upgradelive.Read(c.t.Context(), c.Cluster, r, upgradelive.Options{}); err != nil {
		c.t.Fatal(err)
	}
	target, err := upgradecheck.ParseTarget(table, "1.38", "", "")
	if err != nil {
		c.t.Fatal(err)
	}
	removals, rest := upgradecheck.Removals(upgradecheck.Check(table, target, r.Facts))
	fix, err = objectfix.Plan(c.t.Context(), c.Cluster, removals, objectfix.Options{Table: table, Force: force,
		Take: []string{"upgrade", "check", "--fix", "--force"}})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range rest {
		left = append(left, f.Rule)
	}
	return fix, left
}

// results returns the result of each object.
func results(fix *objectfix.Fix) (all []string) {
	for _, c := range fix.Changes() {
		all = append(all, c.Result+" "+c.Object)
	}
	slices.Sort(all)
	return all
}

const (
	windowsProxy = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy-windows, namespace: kube-system, labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: proxy}}
spec:
  selector: {matchLabels: {app: kube-proxy-windows}}
  template:
    metadata: {labels: {app: kube-proxy-windows}}
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers:
      - name: kube-proxy
        image: example.com/proxy:1
        command: [kube-proxy.exe]
        args: [--v=2, "--feature-gates=WinDSR=true,WinOverlay=true", --enable-dsr=true]
        env: [{name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}, {name: FEATURE_GATES, value: "WinDSR=true"}]
`
	proxyConfig = "# ours\nkind: KubeProxyConfiguration\napiVersion: kubeproxy.config.k8s.io/v1alpha1\nfeatureGates: {WinDSR: true}  # old\nmode: \"\"\n"
	imageProxy  = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: proxy-of-the-image, namespace: kube-system}
spec:
  selector: {matchLabels: {app: proxy}}
  template:
    metadata: {labels: {app: proxy}}
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers:
      - {name: kube-proxy, image: "sigwindowstools/kube-proxy:v1.36.3-calico-hostprocess", args: ["$env:CONTAINER_SANDBOX_MOUNT_POINT/kube-proxy/start.ps1"]}
`
)

func configMap(name, key, text string) string {
	o, _ := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": metav1.NamespaceSystem},
		"data": map[string]any{key: text, "kubeconfig.conf": "kind: Config\n"}})
	return string(o)
}

// conflicts shows that fields of other managers are named and stay, and that force takes them: only these fields change, and
// their managers keep the others. A gate that a script in an image sets is left.
func conflicts(c *liveCluster) {
	t := c.t
	c.create("helm", windowsProxy)
	c.create("kubeadm", configMap("kube-proxy", "config.conf", proxyConfig))
	c.create("kubectl", imageProxy)
	before := c.get("DaemonSet", "kube-proxy-windows")

	fix, left := c.plan(false)
	want := []string{"conflict ConfigMap kube-system/kube-proxy", "conflict DaemonSet kube-system/kube-proxy-windows"}
	if diff := cmp.Diff(want, results(fix)); diff != "" || fix.Ready() != 0 {
		t.Fatalf("%d are ready, -want +got:\n%s", fix.Ready(), diff)
	}
	if diff := cmp.Diff([]string{"gate-unknown", "gate-unknown"}, left); diff != "" { // WinDSR and WinOverlay of the image
		t.Errorf("left: %s", diff)
	}
	var owners []string
	for _, change := range fix.Changes() {
		for _, o := range change.Owners {
			owners = append(owners, o.Field+" "+o.Manager)
		}
		if change.Object == "DaemonSet kube-system/kube-proxy-windows" && (len(change.Sources) != 1 || !strings.Contains(change.Sources[0], "helm upgrade")) {
			t.Errorf("%q", change.Sources)
		}
	}
	slices.Sort(owners)
	wantOwners := []string{"data.config.conf kubeadm", "spec.template.spec.containers[kube-proxy].args helm",
		"spec.template.spec.containers[kube-proxy].env[FEATURE_GATES].value helm"}
	if diff := cmp.Diff(wantOwners, owners); diff != "" {
		t.Errorf("owners, -want +got:\n%s", diff)
	}
	var conflict *cni.ConflictError
	if err := objectfix.Failure(fix.Changes()); !errors.As(err, &conflict) || !strings.Contains(err.Error(), "swdt upgrade check --fix --force") {
		t.Errorf("%v", err)
	}
	if err := fix.Apply(t.Context()); err != nil || c.get("DaemonSet", "kube-proxy-windows").GetGeneration() != before.GetGeneration() {
		t.Errorf("%v; the object changed without force", err)
	}

	fix, _ = c.plan(true)
	if got := c.get("DaemonSet", "kube-proxy-windows"); got.GetGeneration() != before.GetGeneration() {
		t.Error("the plan has changed the object")
	}
	if err := fix.Apply(t.Context()); err != nil || objectfix.Failure(fix.Changes()) != nil {
		t.Fatalf("%v, %v", err, objectfix.Failure(fix.Changes()))
	}
	after := c.get("DaemonSet", "kube-proxy-windows")
	containers, _, _ := unstructured.NestedSlice(before.Object, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["args"] = []any{"--v=2", "--enable-dsr=true"}
	containers[0].(map[string]any)["env"].([]any)[1].(map[string]any)["value"] = ""
	gotContainers, _, _ := unstructured.NestedSlice(after.Object, "spec", "template", "spec", "containers")
	gotContainers[0].(map[string]any)["env"].([]any)[1].(map[string]any)["value"] = "" // an empty value is left out
	if diff := cmp.Diff(containers, gotContainers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	data, _, _ := unstructured.NestedStringMap(c.get("ConfigMap", "kube-proxy").Object, "data")
	if want := strings.Replace(proxyConfig, "featureGates: {WinDSR: true}  # old\n", "", 1); data["config.conf"] != want || data["kubeconfig.conf"] == "" {
		t.Errorf("%q", data)
	}
	if again, _ := c.plan(false); len(again.Changes()) != 0 {
		t.Errorf("a second fix: %v", results(again))
	}
}

// secondFix shows that a fix keeps what an earlier one has applied: an apply without these fields would remove them.
func secondFix(c *liveCluster) {
	t := c.t
	c.create("kubeadm", configMap("kube-proxy", "config.conf", proxyConfig))
	fix, _ := c.plan(true)
	if err := fix.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, _, _ := unstructured.NestedString(c.get("ConfigMap", "kube-proxy").Object, "data", "config.conf")
	patch := []byte(`{"data":{"run.ps1":"C:\\k\\kube-proxy.exe --feature-gates=WinOverlay=true --v=2\n"}}`)
	if _, err := c.resource("ConfigMap").Patch(t.Context(), "kube-proxy", "application/merge-patch+json", patch, metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
	fix, _ = c.plan(true)
	if err := fix.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(c.get("ConfigMap", "kube-proxy").Object, "data")
	if data["config.conf"] != first || first == "" || data["run.ps1"] != "C:\\k\\kube-proxy.exe --v=2\n" || objectfix.Failure(fix.Changes()) != nil {
		t.Errorf("%q, %v", data, objectfix.Failure(fix.Changes()))
	}
}

// changedMeanwhile shows that a change of another tool between plan and apply is not overwritten.
func changedMeanwhile(c *liveCluster) {
	t := c.t
	c.create("kubeadm", configMap("kube-proxy", "config.conf", proxyConfig))
	fix, _ := c.plan(true)
	const newer = "kind: KubeProxyConfiguration\nfeatureGates: {WinDSR: true}\nclusterCIDR: 10.0.0.0/8\n"
	patch, _ := yaml.Marshal(map[string]any{"data": map[string]any{"config.conf": newer}})
	patch, _ = yaml.YAMLToJSON(patch)
	if _, err := c.resource("ConfigMap").Patch(t.Context(), "kube-proxy", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := fix.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(c.get("ConfigMap", "kube-proxy").Object, "data")
	changes := fix.Changes()
	if data["config.conf"] != newer || len(changes) != 1 || changes[0].Result != objectfix.Failed || !strings.Contains(changes[0].Message, "run the command again") {
		t.Errorf("%+v, %q", changes, data)
	}
}
