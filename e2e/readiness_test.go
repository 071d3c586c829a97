//go:build e2e && linux

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	clusterapi "github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/proof/readiness"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane"
	"github.com/swdt-dev/swdt/internal/sandbox/controlplane/controlplanetest"
	"github.com/swdt-dev/swdt/internal/wait"
)

// TestReadinessOnARealAPIServer runs readiness cases with Kubernetes' own e2e.test against a real
// control plane. A Node object stands for the Windows node, since the specs of these cases look at
// objects alone: one reads the node's boot ID, one skips itself without a RuntimeClass.
func TestReadinessOnARealAPIServer(t *testing.T) {
	if os.Getenv("SWDT_LAB_CLUSTER") != "required" {
		t.Skip("needs the lab's e2e.test and control plane: run make e2e")
	}
	binary := lab(t, realSpecs)
	plane := controlplanetest.Start(t, controlplane.Options{})
	t.Setenv("KUBECONFIG", plane.Kubeconfig())
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	api, err := clusterapi.Open(clusterapi.Options{Kubeconfig: plane.Kubeconfig()})
	if err != nil {
		t.Fatal(err)
	}
	node := &nodeObject{api: api, name: "win-1"}
	node.live(t)

	for _, test := range []struct {
		name, bootID string
		code         int
		want         map[string]string
	}{
		{"ready", "7", 0, map[string]string{"node-boot-id": "proved", "isolation-hyper-v": "notPossible",
			"host-process-command": "notPossible", "node-reboot": "notPossible"}},
		{"without a boot ID", "", 5, map[string]string{"node-boot-id": "failed", "isolation-hyper-v": "notPossible",
			"host-process-command": "notPossible", "node-reboot": "notPossible"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			node.setBootID(t, test.bootID)
			folder := filepath.Join(t.TempDir(), "results")
			r := swdtWithin(t, 8*time.Minute, "readiness", "run", "--binary", binary, "--skip-checks", "--assume", "hyper-v",
				"--case", "node-boot-id,isolation-hyper-v,host-process-command,node-reboot", "--out", folder, "-o", "json")
			if r.code != test.code {
				t.Fatalf("exit code %d, want %d", r.code, test.code)
			}
			got := map[string]string{}
			for _, c := range decoded[readiness.Report](t, r).Cases {
				got[c.ID] = c.Result
				t.Logf("%s: %s %.1f s %s", c.ID, c.Result, c.Seconds, c.Message)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if r := swdt(t, "readiness", "report", folder); r.code != test.code {
				t.Errorf("report: exit code %d, want %d", r.code, test.code)
			}
		})
	}
}

// nodeObject is a Windows node that consists of its objects alone.
type nodeObject struct {
	api  *clusterapi.Cluster
	name string
}

// live makes the node, and renews its lease until the test ends, so that the node stays Ready.
func (n *nodeObject) live(t *testing.T) {
	t.Helper()
	nodes, leases := n.api.Clientset().CoreV1().Nodes(), n.api.Clientset().CoordinationV1().Leases("kube-node-lease")
	made := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name,
		Labels: map[string]string{corev1.LabelOSStable: "windows", corev1.LabelHostname: n.name}}}
	if _, err := nodes.Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	lease, err := leases.Create(t.Context(), lease, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait.For(ctx, 2*time.Second) == nil {
			now := metav1.NowMicro()
			lease.Spec.HolderIdentity, lease.Spec.RenewTime = &n.name, &now
			if renewed, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err == nil {
				lease = renewed
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// setBootID writes the status of the node.
func (n *nodeObject) setBootID(t *testing.T, id string) {
	t.Helper()
	nodes := n.api.Clientset().CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := nodes.Get(t.Context(), n.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		live.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			LastHeartbeatTime: metav1.Now()}}
		live.Status.NodeInfo.BootID, live.Status.NodeInfo.OperatingSystem = id, "windows"
		live.Status.NodeInfo.ContainerRuntimeVersion = "containerd://1.7.12"
		_, err = nodes.UpdateStatus(t.Context(), live, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReadinessProbesOnAWineNode asks the real kubelet of a node under Wine.
func TestReadinessProbesOnAWineNode(t *testing.T) {
	c := newPodCluster(t)
	r := swdt(t, "readiness", "run", "--kubeconfig", c.cluster.Kubeconfig, "--case", "probe-kubelet-metrics,probe-node-logs",
		"--out", filepath.Join(t.TempDir(), "results"), "-o", "json")
	got := map[string]string{}
	for _, c := range decoded[readiness.Report](t, r).Cases {
		got[c.ID] = c.Result
		t.Logf("%s: %s %.1f s %s", c.ID, c.Result, c.Seconds, c.Message)
	}
	want := map[string]string{"probe-kubelet-metrics": "proved", "probe-node-logs": "notPossible"}
	if diff := cmp.Diff(want, got); diff != "" || r.code != 0 {
		t.Errorf("exit code %d (-want +got):\n%s", r.code, diff)
	}
}
