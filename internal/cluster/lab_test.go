package cluster_test

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
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane/controlplanetest"
)

// Verifies on a real control plane what the fakes and the simulated cluster only assume.
func TestOnARealControlPlane(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{})
	c, err := cluster.Open(cluster.Options{Kubeconfig: plane.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	t.Run("facts", func(t *testing.T) { realFacts(ctx, t, c, plane) })
	t.Run("token", func(t *testing.T) { realToken(ctx, t, c) })
	t.Run("stranger", func(t *testing.T) { realStranger(ctx, t, c, plane) })
	t.Run("node", func(t *testing.T) { realNode(ctx, t, c) })
	t.Run("drain", func(t *testing.T) { realDrain(ctx, t, c) })
}

func realFacts(ctx context.Context, t *testing.T, c *cluster.Cluster, plane *controlplane.ControlPlane) {
	version, err := c.Version(ctx)
	if err != nil || !strings.HasPrefix(version, "v1.") {
		t.Errorf("version %q, %v", version, err)
	}
	info, err := c.ClusterInfo(ctx)
	if err != nil {
		t.Errorf("cluster-info: %v", err)
	}
	hashes, err := c.CACertHashes(ctx)
	if err != nil || len(hashes) != 1 {
		t.Errorf("CA hashes %v, %v; want one", hashes, err)
	}
	want := cluster.ClusterInfo{Exists: true, Server: plane.Server(), CACertHashes: hashes, Anonymous: true}
	if diff := cmp.Diff(want, info, cmpopts.IgnoreFields(info, "SignedFor")); diff != "" {
		t.Errorf("cluster-info (-want +got):\n%s", diff)
	}
	kubelet, err := c.KubeletConfig(ctx)
	if err != nil || !kubelet.Exists {
		t.Errorf("kubelet-config %+v, %v", kubelet, err)
	}
	if kind := "kind: KubeletConfiguration"; !strings.Contains(kubelet.Content, kind) {
		t.Errorf("kubelet-config %q, want %q in it", kubelet.Content, kind)
	}
	skew, err := c.ClockSkew(ctx)
	if err != nil || skew.Offset.Abs() > skew.Uncertainty {
		t.Errorf("skew of one machine to itself %+v, %v", skew, err)
	}
	missing, err := c.Missing(ctx, append(cluster.JoinNeeds(), cluster.DrainNeeds()...))
	if err != nil || len(missing) != 0 {
		t.Errorf("an administrator may not %v, %v", missing, err)
	}
	cni, err := c.CNI(ctx)
	if err != nil {
		t.Errorf("CNI: %v", err)
	}
	if diff := cmp.Diff(cluster.CNI{}, cni); diff != "" {
		t.Errorf("networks of a cluster that has none (-want +got):\n%s", diff)
	}
}

func realToken(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	token, err := c.MintToken(ctx, cluster.TokenOptions{Node: "win-1"})
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.ClusterInfo(ctx)
	if err != nil || !slices.Contains(info.SignedFor, token.ID()) {
		t.Errorf("cluster-info is signed for %v, %v; not for %s", info.SignedFor, err, token.ID())
	}
	swept, err := c.SweepTokens(ctx, "win-1")
	if err != nil || !slices.Equal(swept, []string{token.ID()}) {
		t.Errorf("swept %v, %v", swept, err)
	}
	if err := c.DeleteToken(ctx, token); err != nil {
		t.Errorf("delete a token that is gone: %v", err)
	}
}

// realStranger acts as a user who has only the rights of a bootstrap token.
func realStranger(ctx context.Context, t *testing.T, c *cluster.Cluster, plane *controlplane.ControlPlane) {
	token, err := c.MintToken(ctx, cluster.TokenOptions{Node: "win-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.DeleteToken(ctx, token); err != nil {
			t.Error(err)
		}
	}()
	stranger := asToken(t, plane, token)
	missing, err := stranger.Missing(ctx, cluster.DrainNeeds())
	if err != nil || len(missing) == 0 {
		t.Errorf("a bootstrap token lacks %v of what draining takes, %v", missing, err)
	}
	_, err = stranger.MintToken(ctx, cluster.TokenOptions{Node: "win-2"})
	var forbidden *cluster.ForbiddenError
	if !errors.As(err, &forbidden) || forbidden.Missing.String() != "create secrets -n kube-system" {
		t.Errorf("a bootstrap token makes another: %v", err)
	}
}

// asToken opens the cluster with a bootstrap token, by means of the lab's kubectl.
func asToken(t *testing.T, plane *controlplane.ControlPlane, token cluster.Token) *cluster.Cluster {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: x\n" +
		"clusters: [{name: x, cluster: {insecure-skip-tls-verify: true, server: '" + plane.Server() + "'}}]\n" +
		"users: [{name: x, user: {token: '" + token.Value() + "'}}]\n" +
		"contexts: [{name: x, context: {cluster: x, user: x}}]\n"
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(cluster.Options{Kubeconfig: config})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func realNode(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	if n, err := c.Node(ctx, "none"); err != nil || n.Exists {
		t.Errorf("a node that is not there: %+v, %v", n, err)
	}
	makeNode(ctx, t, c, "plain")
	taint := corev1.Taint{Key: "os", Value: "windows", Effect: corev1.TaintEffectNoSchedule}
	labels := map[string]string{"node-role.kubernetes.io/worker": ""}
	for _, want := range []bool{true, false} {
		if changed, err := c.SetLabels(ctx, "plain", labels); changed != want || err != nil {
			t.Errorf("SetLabels = %v, %v; wanted %v", changed, err, want)
		}
		if changed, err := c.SetTaints(ctx, "plain", []corev1.Taint{taint}); changed != want || err != nil {
			t.Errorf("SetTaints = %v, %v; wanted %v", changed, err, want)
		}
	}
	wanted := cluster.Wanted{Registered: true, Labels: labels, Taints: []corev1.Taint{taint}}
	if _, err := c.AwaitNode(ctx, "plain", wanted, func(string) {}); err != nil {
		t.Error(err)
	}
	for _, want := range []bool{true, false} {
		if was, err := c.DeleteNode(ctx, "plain"); was != want || err != nil {
			t.Errorf("DeleteNode = %v, %v; wanted %v", was, err, want)
		}
	}
}

// makeNode makes a Ready Node without a machine: the node lifecycle controller waits 40 s
// before it changes that.
func makeNode(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	nodes := c.Clientset().CoreV1().Nodes()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": "windows"}}}
	if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	status := fmt.Appendf(nil, `{"status":{"conditions":[`+
		`{"type":"Ready","status":"True","reason":"Test","lastHeartbeatTime":%q}]}}`,
		time.Now().UTC().Format(time.RFC3339))
	if _, err := nodes.Patch(ctx, name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// realDrain checks a drain while a real budget first forbids and then allows an eviction.
func realDrain(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	makeNode(ctx, t, c, "win-1")
	client := c.Clientset()
	app := map[string]string{"app": "guarded"}
	deployAndBind(ctx, t, c, "win-1", app)
	one := intstr.FromInt32(1)
	guard, err := client.PolicyV1().PodDisruptionBudgets("default").Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "keep-one"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: app}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0) // no kubelet runs that could end the pods gracefully
	options := cluster.DrainOptions{Timeout: 4 * time.Second, GracePeriod: &now}
	_, err = c.Drain(ctx, cluster.Machine{Node: "win-1"}, options, &story{})
	var blocked *cluster.DrainBlockedError
	if !errors.As(err, &blocked) {
		t.Fatalf("Drain = %v, want a DrainBlockedError", err)
	}
	if len(blocked.Pods) != 1 {
		t.Fatalf("blocked by the pods %+v, want one", blocked.Pods)
	}
	if diff := cmp.Diff([]string{"keep-one"}, blocked.Pods[0].Budgets); diff != "" {
		t.Errorf("the budgets of the pod (-want +got):\n%s", diff)
	}
	// The message has the budget's own numbers, which are not in the message of the status.
	if !strings.Contains(blocked.Pods[0].Message, "keep-one") {
		t.Errorf("pod %+v", blocked.Pods[0])
	}
	t.Log(err)
	if n, err := c.Node(ctx, "win-1"); err != nil || n.Cordoned {
		t.Errorf("it stays cordoned, or %v", err)
	}
	err = client.PolicyV1().PodDisruptionBudgets("default").Delete(ctx, guard.Name, metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	options.Timeout = time.Minute
	done, err := c.Drain(ctx, cluster.Machine{Node: "win-1"}, options, &story{})
	if err != nil {
		t.Errorf("Drain: %v", err)
	}
	if !done.Cordoned || len(done.Evicted) != 1 {
		t.Errorf("Drain = %+v, want a cordon and one pod", done)
	}
	if changed, err := c.Uncordon(ctx, "win-1"); !changed || err != nil {
		t.Errorf("Uncordon = %v, %v", changed, err)
	}
	realForeignCordon(ctx, t, c)
}

// realForeignCordon uncordons and cordons a node that a drain has cordoned, as kubectl does: that cordon stays.
func realForeignCordon(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	if _, err := c.NewDrainRound().Step(ctx, "win-1", cluster.DrainOptions{}); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Node(ctx, "win-1"); err != nil || !n.CordonedByUs {
		t.Errorf("the cordon of a drain is not swdt's: %+v, %v", n, err)
	}
	for _, patch := range []string{`{"spec":{"unschedulable":null}}`, `{"spec":{"unschedulable":true}}`} {
		_, err := c.Clientset().CoreV1().Nodes().Patch(ctx, "win-1", types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{FieldManager: "kubectl-cordon"})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.NewDrainRound().Step(ctx, "win-1", cluster.DrainOptions{}); err != nil {
		t.Fatal(err)
	}
	if changed, err := c.Uncordon(ctx, "win-1"); changed || err != nil {
		t.Errorf("Uncordon of the cordon of kubectl = %v, %v", changed, err)
	}
	n, err := c.Node(ctx, "win-1")
	if _, marked := n.Annotations["swdt.dev/cordoned"]; err != nil || !n.Cordoned || n.CordonedByUs || marked {
		t.Errorf("the node is %+v, %v", n, err)
	}
}

// deployAndBind creates a Deployment with one pod that, to the API, runs on node.
func deployAndBind(ctx context.Context, t *testing.T, c *cluster.Cluster, node string, app map[string]string) {
	t.Helper()
	client := c.Clientset()
	replicas := int32(1)
	_, err := client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "guarded"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app},
				Spec: corev1.PodSpec{NodeName: node, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					Containers: []corev1.Container{{Name: "c", Image: "none"}}},
			}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var name string
	eventually(ctx, t, "the Deployment's pod", func() bool {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) == 0 {
			return false
		}
		name = pods.Items[0].Name
		return true
	})
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the controllers write to the pod too
		p, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		_, err = client.CoreV1().Pods("default").UpdateStatus(ctx, p, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(ctx context.Context, t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for %s: %v", what, ctx.Err())
		case <-tick.C:
		}
	}
}
