package podnetwork_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/obtain/artifact"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wait"
)

// Installs the real manifest of flannel on a real API server, removes it, and completes the flannel of
// another installer.
func TestFlannelOnARealAPIServer(t *testing.T) {
	c, mirror := lab(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	makeKubeProxy(ctx, t, c)
	makeNode(ctx, t, c, "linux-1", "linux", "6.1.0")
	makeNode(ctx, t, c, "win-1", "windows", "10.0.26100.1 (amd64)")
	runKubelets(t, c)
	o := podnetwork.Options{Settings: cni.Settings{Network: cni.Flannel}, Mirror: mirror, Wait: 3 * time.Minute,
		NoWindowsFlannel: true, Store: artifact.Options{Cache: t.TempDir()}}
	removal := podnetwork.RemoveOptions{Network: cni.Flannel, Wait: 3 * time.Minute}
	before := flannelNames(ctx, t, c)

	report, err := podnetwork.Install(ctx, c, o, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]plan.State{"flannel": plan.Changed, "kube-proxy": plan.Changed,
		"ready": plan.Changed}
	if diff := cmp.Diff(want, states(report)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	checkFlannel(ctx, t, c)
	again, err := podnetwork.Install(ctx, c, o, ui.Discard{})
	expectUnchanged(t, again, err)
	if _, err := podnetwork.Remove(ctx, c, removal, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, flannelNames(ctx, t, c)); diff != "" {
		t.Errorf("left of flannel (-before +after):\n%s", diff)
	}

	installFlannelByOthers(ctx, t, c, mirror)
	_, err = podnetwork.Install(ctx, c, o, ui.Discard{})
	var conflict *cni.ConflictError
	if !errors.As(err, &conflict) || !strings.Contains(err.Error(), "swdt network install flannel --force") {
		t.Fatalf("Install = %v, wanted a conflict", err)
	}
	o.Force = true
	report, err = podnetwork.Install(ctx, c, o, ui.Discard{})
	if err != nil || !strings.Contains(report.Steps[0].Message, "rollout restart") {
		t.Fatalf("%+v, %v", report, err)
	}
	checkFlannel(ctx, t, c)
	if _, err := podnetwork.Remove(ctx, c, removal, ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	sets := c.Clientset().AppsV1().DaemonSets("kube-flannel")
	if _, err := sets.Get(ctx, "kube-flannel-ds", metav1.GetOptions{}); err != nil {
		t.Errorf("the flannel of others: %v", err)
	}
	if found, err := c.CNI(ctx); err != nil || found.Flannel == nil || len(found.Flannel.WindowsDaemonSets) > 0 {
		t.Errorf("left of flannel for Windows: %+v, %v", found.Flannel, err)
	}
}

func checkFlannel(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	t.Helper()
	found, err := c.CNI(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := &cluster.Flannel{Namespace: "kube-flannel", Network: "10.244.0.0/16", Backend: "vxlan", VNI: 4096, Port: 4789}
	if diff := cmp.Diff(want, found.Flannel); diff != "" {
		t.Errorf("flannel (-want +got):\n%s", diff)
	}
	for _, namespace := range []string{"kube-flannel"} {
		m, err := c.Clientset().CoreV1().ConfigMaps(namespace).Get(ctx, "kube-flannel-cfg", metav1.GetOptions{})
		if err != nil || !strings.Contains(m.Data["cni-conf.json"], "portmap") ||
			!strings.Contains(m.Data["net-conf.json"], "EnableNFTables") {
			t.Errorf("%s: the ConfigMap lost settings: %v, %v", namespace, m.Data, err)
		}
	}
}

// installFlannelByOthers applies flannel's manifest as it is published.
func installFlannelByOthers(ctx context.Context, t *testing.T, c *cluster.Cluster, mirror string) {
	t.Helper()
	manifest := filepath.Join(mirror,
		"raw.githubusercontent.com/flannel-io/flannel/v0.28.10/Documentation/kube-flannel.yml")
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := cni.Parse(manifest, content)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		kind := gvr(o.GroupVersionKind().Group, o.GroupVersionKind().Version, strings.ToLower(o.GetKind())+"s")
		if _, err := c.Dynamic().Resource(kind).Namespace(o.GetNamespace()).Create(ctx, o,
			metav1.CreateOptions{FieldManager: "their-tool"}); err != nil {
			t.Fatal(err)
		}
	}
}

// flannelNames lists the objects of flannel and of kube-proxy for Windows.
func flannelNames(ctx context.Context, t *testing.T, c *cluster.Cluster) (all []string) {
	t.Helper()
	for _, resource := range []string{"namespaces", "configmaps", "serviceaccounts"} {
		list, err := c.Dynamic().Resource(gvr("", "v1", resource)).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			all = append(all, cni.RefOf(&o).String())
		}
	}
	sets, err := c.Clientset().AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range sets.Items {
		all = append(all, d.Name)
	}
	bindings, err := c.Clientset().RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bindings.Items {
		all = append(all, b.Name)
	}
	return all
}

// runKubelets stands for the kubelets of all nodes: it reports every pod as Ready, and ends deleted ones.
func runKubelets(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	o := &operator{c: c}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait.For(ctx, 200*time.Millisecond) == nil {
			if err := errors.Join(o.endPods(ctx), readyPods(ctx, c)); err != nil && ctx.Err() == nil {
				t.Logf("the kubelets' stand-in: %v", err)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func readyPods(ctx context.Context, c *cluster.Cluster) error {
	pods, err := c.Clientset().CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range pods.Items {
		if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.Now()}}
		_, err := c.Clientset().CoreV1().Pods(p.Namespace).UpdateStatus(ctx, &p, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}
