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

	clusterapi "github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/clustertest"
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
	node := &nodeObject{api: api, name: "win-1", system: "windows"}
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
			node.ready(t, func(s *corev1.NodeStatus) { s.NodeInfo.BootID = test.bootID })
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

// nodeObject is a node that consists of its objects alone.
type nodeObject struct {
	api          *clusterapi.Cluster
	name, system string
}

// live makes the node, and renews its lease until the test ends, so that the node stays Ready.
func (n *nodeObject) live(t *testing.T) {
	t.Helper()
	leases := n.api.Clientset().CoordinationV1().Leases("kube-node-lease")
	clustertest.MakeNode(t, n.api, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name,
		Labels: map[string]string{corev1.LabelOSStable: n.system, corev1.LabelHostname: n.name}}})
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

// ready sets the status of a node that is Ready, and what change adds to it.
func (n *nodeObject) ready(t *testing.T, change func(*corev1.NodeStatus)) {
	t.Helper()
	clustertest.SetNodeStatus(t, n.api, n.name, func(s *corev1.NodeStatus) {
		s.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			LastHeartbeatTime: metav1.Now()}}
		s.NodeInfo.OperatingSystem, s.NodeInfo.ContainerRuntimeVersion = n.system, "containerd://1.7.12"
		change(s)
	})
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
