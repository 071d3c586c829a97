package podnetwork_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Installs the real manifest of Calico on a real API server, with a stand-in for the operator.
func TestCalicoOnARealAPIServer(t *testing.T) {
	c, mirror := lab(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	makeKubeProxy(ctx, t, c)
	makeNode(ctx, t, c, "linux-1", "linux", "6.1.0")
	makeNode(ctx, t, c, "win-1", "windows", "10.0.20348.2849 (amd64)")
	o := podnetwork.Options{Settings: cni.Settings{Network: cni.Calico}, Mirror: withPublished(t, mirror),
		Wait: 3 * time.Minute, Store: artifact.Options{Cache: t.TempDir()}}

	dry := o
	dry.DryRun = true
	report, err := podnetwork.Install(ctx, c, dry, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]plan.State{"operator": plan.Skipped, "API server's address": plan.Skipped,
		"installation": plan.Skipped, "strict affinity": plan.Skipped, "kube-proxy": plan.Skipped, "ready": plan.Skipped},
		states(report)); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	if live, err := cni.NewServer(c).Installation(ctx); err != nil || live != nil {
		t.Fatalf("the dry run made %v, %v", live, err)
	}

	operates := runOperator(t, c)
	begun := time.Now()
	report, err = podnetwork.Install(ctx, c, o, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("installed in %s", time.Since(begun))
	for name, state := range states(report) {
		if state != plan.Changed {
			t.Errorf("step %s is %s", name, state)
		}
	}
	checkCalico(ctx, t, c)

	o.Settings.APIServer, o.Settings.KubeProxyImage = "api.example:8443", "mirror.example/kube-proxy:v1.36.3-calico"
	if _, err := podnetwork.Install(ctx, c, o, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	o.Settings = cni.Settings{Network: cni.Calico} // without the flags, their values stay
	again, err := podnetwork.Install(ctx, c, o, ui.Discard{})
	expectUnchanged(t, again, err)
	t.Run("image", func(t *testing.T) { missingImage(ctx, t, c, o, operates) })
	t.Run("remove", func(t *testing.T) { removeCalico(ctx, t, c) })
}

// missingImage makes the image of the Windows node's build disappear.
func missingImage(ctx context.Context, t *testing.T, c *cluster.Cluster, o podnetwork.Options, operates *operator) {
	operates.set(func(o *operator) { o.imageGone = true })
	defer operates.set(func(o *operator) { o.imageGone = false })
	o.Wait = 10 * time.Second
	if err := wait.For(ctx, time.Second); err != nil {
		t.Fatal(err)
	}
	_, err := podnetwork.Install(ctx, c, o, ui.Discard{})
	for _, want := range []string{"calico-node-windows on Windows nodes", "on win-1", "calico/node-windows:v3.28.5",
		"no match for platform", "10.0.20348.2849"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	status, err := podnetwork.Look(ctx, c, podnetwork.Options{}, ui.Discard{})
	if err != nil || !status.Failed() || status.Installed != "swdt" {
		t.Errorf("status %+v, %v", status, err)
	}
}

// removeCalico checks that a removal removes the objects of swdt, and nothing else.
func removeCalico(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "crd.projectcalico.org/v1",
		"kind": "GlobalNetworkPolicy", "metadata": map[string]any{"name": "theirs"}, "spec": map[string]any{}}}
	policies := c.Dynamic().Resource(gvr("crd.projectcalico.org", "v1", "globalnetworkpolicies"))
	if _, err := policies.Create(ctx, theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := names(ctx, t, c)
	o := podnetwork.RemoveOptions{Network: cni.Calico, DryRun: true, Wait: 3 * time.Minute}
	if dry, err := podnetwork.Remove(ctx, c, o, ui.Discard{}); err != nil || dry.Result != "unchanged" {
		t.Errorf("dry run = %+v, %v", dry, err)
	}
	if diff := cmp.Diff(before, names(ctx, t, c)); diff != "" {
		t.Errorf("the dry run changed (-before +after):\n%s", diff)
	}
	o.DryRun = false
	report, err := podnetwork.Remove(ctx, c, o, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", report.Steps)
	after := names(ctx, t, c)
	want := []string{
		"CustomResourceDefinition globalnetworkpolicies.crd.projectcalico.org", // it has an object
		"CustomResourceDefinition ipamconfigurations.projectcalico.org",        // swdt did not create it
		"CustomResourceDefinition tigerastatuses.operator.tigera.io",           // it has objects of the operator
		"Namespace calico-system",
	}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("left of Calico (-want +got):\n%s", diff)
	}
	o.CRDs = true
	if _, err := podnetwork.Remove(ctx, c, o, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	want = []string{"CustomResourceDefinition ipamconfigurations.projectcalico.org", "Namespace calico-system"}
	if diff := cmp.Diff(want, names(ctx, t, c)); diff != "" {
		t.Errorf("left with --crds (-want +got):\n%s", diff)
	}
}

// names lists the objects of Calico and of kube-proxy for Windows.
func names(ctx context.Context, t *testing.T, c *cluster.Cluster) (all []string) {
	t.Helper()
	for _, kind := range []schema.GroupVersionResource{
		gvr("apiextensions.k8s.io", "v1", "customresourcedefinitions"), gvr("", "v1", "namespaces"),
		gvr("rbac.authorization.k8s.io", "v1", "clusterroles"), gvr("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
		gvr("apps", "v1", "deployments"), gvr("apps", "v1", "daemonsets"), gvr("operator.tigera.io", "v1", "installations"),
	} {
		list, err := c.Dynamic().Resource(kind).List(ctx, metav1.ListOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		if err != nil {
			continue
		}
		for _, o := range list.Items {
			text := cni.RefOf(&o).String()
			if strings.Contains(text, "calico") || strings.Contains(text, "tigera") || strings.Contains(text, "windows") {
				all = append(all, text)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Completes the Calico of another installer: a conflict is shown and nothing changes, --force takes the
// fields, all others stay, and a removal turns only Windows off.
func TestCalicoOfOthersOnARealAPIServer(t *testing.T) {
	c, mirror := lab(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	makeKubeProxy(ctx, t, c)
	makeNode(ctx, t, c, "linux-1", "linux", "6.1.0")
	installByOthers(ctx, t, c, mirror)
	installation := c.Dynamic().Resource(gvr("operator.tigera.io", "v1", "installations"))
	runOperator(t, c)
	before := eventuallyDefaulted(ctx, t, installation)
	o := podnetwork.Options{Settings: cni.Settings{Network: cni.Calico}, Wait: 3 * time.Minute}

	_, err := podnetwork.Install(ctx, c, o, ui.Discard{})
	var conflict *cni.ConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("Install = %v, wanted a conflict", err)
	}
	t.Log(err)
	for _, want := range []string{".spec.calicoNetwork.bgp", `"their-tool"`, "IPIP", "VXLAN",
		"swdt network install --force"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	after, err := installation.Get(ctx, "default", metav1.GetOptions{})
	if err != nil || after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("a conflict changed the Installation, %v", err)
	}
	if _, exists, err := unstructured.NestedMap(after.Object, "metadata", "labels"); exists || err != nil {
		t.Errorf("the Installation of others got a label, %v", err)
	}

	o.Force = true
	report, err := podnetwork.Install(ctx, c, o, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	if got := states(report)["operator"]; got != plan.OK {
		t.Errorf("the operator of others is %s", got)
	}
	taken, err := installation.Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"variant": "Calico", "serviceCIDRs": []any{"10.96.0.0/12", "10.1.0.0/16"},
		"nodeMetricsPort": int64(9091),
		"calicoNetwork": map[string]any{"bgp": "Disabled", "windowsDataplane": "HNS", "mtu": int64(1400),
			"ipPools": []any{map[string]any{"name": "theirs", "cidr": "10.50.0.0/16", "encapsulation": "VXLAN",
				"blockSize": int64(24), "disableBGPExport": false}}}}
	if diff := cmp.Diff(want, taken.Object["spec"]); diff != "" {
		t.Errorf("spec after --force (-want +got):\n%s", diff)
	}

	removal := podnetwork.RemoveOptions{Network: cni.Calico, Wait: 3 * time.Minute}
	removed, err := podnetwork.Remove(ctx, c, removal, ui.Discard{})
	if err != nil || removed.Result != "changed" {
		t.Fatalf("Remove = %+v, %v", removed, err)
	}
	left, err := installation.Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	delete(want["calicoNetwork"].(map[string]any), "windowsDataplane")
	if diff := cmp.Diff(want, left.Object["spec"]); diff != "" {
		t.Errorf("spec after the removal (-want +got):\n%s", diff)
	}
	deployments := c.Clientset().AppsV1().Deployments("tigera-operator")
	if _, err := deployments.Get(ctx, "tigera-operator", metav1.GetOptions{}); err != nil {
		t.Errorf("the operator of others: %v", err)
	}
}

// installByOthers installs Calico as another tool does, with settings that do not fit Windows.
func installByOthers(ctx context.Context, t *testing.T, c *cluster.Cluster, mirror string) {
	t.Helper()
	manifest := filepath.Join(mirror,
		"raw.githubusercontent.com/projectcalico/calico/v3.28.5/manifests/tigera-operator.yaml")
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := cni.Parse(manifest, content)
	if err != nil {
		t.Fatal(err)
	}
	others := &unstructured.Unstructured{}
	if err := others.UnmarshalJSON([]byte(`{"apiVersion":"operator.tigera.io/v1","kind":"Installation",
		"metadata":{"name":"default"},"spec":{"serviceCIDRs":["10.96.0.0/12","10.1.0.0/16"],"nodeMetricsPort":9091,
		"calicoNetwork":{"bgp":"Enabled","mtu":1400,"ipPools":[{"name":"theirs","cidr":"10.50.0.0/16",
		"encapsulation":"IPIP","blockSize":24}]}}}`)); err != nil {
		t.Fatal(err)
	}
	for _, o := range append(objects, others) {
		kind := gvr(o.GroupVersionKind().Group, o.GroupVersionKind().Version, strings.ToLower(o.GetKind())+"s")
		create := func() error {
			_, err := c.Dynamic().Resource(kind).Namespace(o.GetNamespace()).Create(ctx, o,
				metav1.CreateOptions{FieldManager: "their-tool"})
			return err
		}
		err := wait.Condition{Name: cni.RefOf(o).String(), Interval: 200 * time.Millisecond, Limit: 30 * time.Second,
			Look: func(context.Context) error { return create() }}.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// eventuallyDefaulted returns the Installation once the operator's stand-in has seen it.
func eventuallyDefaulted(ctx context.Context, t *testing.T,
	client dynamic.ResourceInterface) (live *unstructured.Unstructured) {
	t.Helper()
	err := wait.Condition{Name: "the operator's defaults", Interval: 100 * time.Millisecond, Limit: time.Minute,
		Look: func(ctx context.Context) (err error) {
			live, err = client.Get(ctx, "default", metav1.GetOptions{})
			if variant, _, _ := unstructured.NestedString(live.Object, "spec", "variant"); err == nil && variant == "" {
				err = errors.New("there are none yet")
			}
			return err
		}}.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func states(r podnetwork.Report) map[string]plan.State {
	all := map[string]plan.State{}
	for _, step := range r.Steps {
		all[step.Name] = step.State
	}
	return all
}

// expectUnchanged requires that a run changed nothing. It may have waited: under load, the stand-ins
// for the controllers need a moment after the last change.
func expectUnchanged(t *testing.T, r podnetwork.Report, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("a second run: %v", err)
	}
	for _, step := range r.Steps {
		if step.State != plan.OK && step.Name != "ready" {
			t.Errorf("a second run: step %s is %s: %s %s", step.Name, step.State, step.Change, step.Message)
		}
	}
}

// checkCalico compares the cluster with the settings that Windows needs.
func checkCalico(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	t.Helper()
	found, err := c.CNI(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := &cluster.Calico{Operator: true, BGP: "Disabled", WindowsDataplane: "HNS",
		ServiceCIDRs: []string{"10.96.0.0/12"}, StrictAffinity: true, ServicesEndpoint: true, WindowsDaemonSets: []string{"calico-system/calico-node-windows"}}
	if diff := cmp.Diff(want, found.Calico); diff != "" {
		t.Errorf("Calico (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"kube-system/kube-proxy-windows"}, found.KubeProxyWindows); diff != "" {
		t.Errorf("kube-proxy (-want +got):\n%s", diff)
	}
}

// makeKubeProxy makes what kubeadm's addon makes for kube-proxy on Linux.
func makeKubeProxy(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	t.Helper()
	core := c.Clientset().CoreV1()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-proxy"}, Data: map[string]string{"config.conf": ""}}
	_, err := core.ConfigMaps("kube-system").Create(ctx, m, metav1.CreateOptions{})
	if err == nil {
		_, err = core.ServiceAccounts("kube-system").Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "kube-proxy"}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// makeNode makes a Ready Node without a machine.
func makeNode(ctx context.Context, t *testing.T, c *cluster.Cluster, name, system, kernel string) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": system,
		"kubernetes.io/arch": "amd64"}}}
	nodes := c.Clientset().CoreV1().Nodes()
	if _, err := nodes.Create(ctx, n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	status := fmt.Appendf(nil, `{"status":{"nodeInfo":{"kernelVersion":%q},
		"capacity":{"pods":"110","cpu":"4","memory":"8Gi"},"allocatable":{"pods":"110","cpu":"4","memory":"8Gi"},
		"conditions":[{"type":"Ready","status":"True","reason":"Test","lastHeartbeatTime":%q}]}}`,
		kernel, time.Now().UTC().Format(time.RFC3339))
	if _, err := nodes.Patch(ctx, name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}
