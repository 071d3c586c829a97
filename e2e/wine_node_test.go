//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/sandbox/wine"
)

// TestWineNodeJoinsByHand checks the Wine node itself: a join by hand, with the real
// containerd, kubeadm and kubelet, ends in a node that is Ready, reports its statistics
// and is Ready again after a reboot. If this fails, no other test of a join can
// succeed.
func TestWineNodeJoinsByHand(t *testing.T) {
	c := clusterSandbox(t)
	c.installByHand(t)
	c.joinByHand(t, "by-hand")

	c.expectNode(t, "by-hand", "Ready", "v1.36.3", "Windows Server 2022 Datacenter", "10.0.20348.2849",
		"containerd://1.7.12")
	var summary struct {
		Node struct {
			NodeName string
			Memory   struct{ WorkingSetBytes uint64 }
		}
	}
	eventually(t, "statistics of the node", func() error {
		if err := json.Unmarshal([]byte(c.kubectl(t, "get", "--raw", "/api/v1/nodes/by-hand/proxy/stats/summary")),
			&summary); err != nil {
			return err
		}
		if summary.Node.NodeName != "by-hand" || summary.Node.Memory.WorkingSetBytes == 0 {
			return fmt.Errorf("%+v", summary)
		}
		return nil
	})
	if logs := c.kubectl(t, "get", "--raw", "/api/v1/nodes/by-hand/proxy/logs/kubelet/kubelet.log"); !strings.Contains(
		logs, "Started kubelet") {
		t.Errorf("the kubelet's log through the API server: %.300s", logs)
	}

	prefix, err := wine.Open(c.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := prefix.Reboot(ctx); err != nil {
		t.Fatal(err)
	}
	// The reboot has ended the first kubelet, so only a new kubelet can renew the lease from now on.
	var renewed string
	eventually(t, "the node's lease", func() error {
		if renewed = c.leaseRenewed(t, "by-hand"); renewed == "" {
			return errors.New("there is none")
		}
		return nil
	})
	eventually(t, "the kubelet after a reboot", func() error {
		if now := c.leaseRenewed(t, "by-hand"); now == renewed {
			return fmt.Errorf("its lease is of %s", now)
		}
		return nil
	})
	c.expectNode(t, "by-hand", "Ready")
}

// installByHand does the work of sig-windows' scripts on a node before it joins.
func (c cluster) installByHand(t *testing.T) {
	t.Helper()
	for source, destination := range map[string]string{
		"containerd-1.7.12.exe":           containerdExe,
		"node/kubelet-1.36.3.exe":         kubeletExe,
		"node/kubeadm-1.36.3.exe":         `C:\k\kubeadm.exe`,
		"node/kube-log-runner-1.36.3.exe": `C:\k\kube-log-runner.exe`,
	} {
		ok(t, "cp", "-c", c.Config, lab(t, source), "node:"+destination)
	}
	config := ok(t, "exec", "-c", c.Config, "--", containerdExe, "config", "default").stdout
	folders := strings.NewReplacer(
		`C:\\Program Files\\containerd\\cni\\bin`, "C:/opt/cni/bin",
		`C:\\Program Files\\containerd\\cni\\conf`, "C:/etc/cni/net.d")
	c.put(t, folders.Replace(config), `C:\Program Files\containerd\config.toml`)
	// Neither containerd nor kube-log-runner creates the folder of its log.
	for _, folder := range []string{`C:\etc\kubernetes\manifests`, `C:\var\log\containerd`, `C:\var\log\kubelet`} {
		c.put(t, "", folder+`\.keep`)
	}
	ok(t, "exec", "-c", c.Config, "--", containerdExe, "--register-service", "--log-file",
		`C:\var\log\containerd\containerd.log`)
	ok(t, "exec", "-c", c.Config, "--", "net", "start", "containerd")
	createService(t, c.Config, "kubelet", handMadeKubelet, "depend=", "containerd")
}

const handMadeKubelet = `C:\k\kube-log-runner.exe --log-file=C:/var/log/kubelet/kubelet.log C:\k\kubelet.exe ` +
	`--windows-service` +
	` --cert-dir=C:\var\lib\kubelet\pki --config=/var/lib/kubelet/config.yaml` +
	` --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf` +
	` --hostname-override=by-hand --cgroups-per-qos=false --enforce-node-allocatable= --resolv-conf=`

func (c cluster) joinByHand(t *testing.T, name string) {
	t.Helper()
	command := run(t, lab(t, "linux/kubeadm"), "token", "create", "--print-join-command", "--kubeconfig", c.Kubeconfig)
	// kubeadm join ENDPOINT --token TOKEN --discovery-token-ca-cert-hash HASH
	words := strings.Fields(command)
	if len(words) != 7 {
		t.Fatalf("the join command has %d words", len(words))
	}
	c.put(t, fmt.Sprintf(`apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken: {apiServerEndpoint: %q, token: %q, caCertHashes: [%q]}
nodeRegistration: {name: %s, criSocket: "npipe:////./pipe/containerd-containerd"}
`, words[2], words[4], words[6], name), `C:\join.yaml`)
	ok(t, "exec", "-c", c.Config, "--", `C:\k\kubeadm.exe`, "join", "--config", `C:\join.yaml`)
}

// put writes a file on the node.
func (c cluster) put(t testing.TB, content, destination string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	ok(t, "cp", "-c", c.Config, file, "node:"+destination)
}

func (c cluster) leaseRenewed(t *testing.T, node string) string {
	t.Helper()
	return c.kubectl(t, "get", "lease", node, "-n", "kube-node-lease", "--ignore-not-found", "-o",
		"jsonpath={.spec.renewTime}")
}
