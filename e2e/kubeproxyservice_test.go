//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// flannelNames begins a manifest with the names of flannel's. The DaemonSet kube-flannel-ds of a test follows it.
const flannelNames = `apiVersion: v1
kind: Namespace
metadata: {name: kube-flannel}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-flannel-cfg, namespace: kube-flannel}
data: {net-conf.json: '{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}'}
---
`

// flannelOfLinux is flannel's DaemonSet in a cluster without a Linux node: this test makes the HNS network itself.
const flannelOfLinux = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-flannel-ds, namespace: kube-flannel}
spec:
  selector: {matchLabels: {app: flannel}}
  template:
    metadata: {labels: {app: flannel}}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      containers: [{name: kube-flannel, image: 'ghcr.io/flannel-io/flannel:v0.28.10'}]
`

// TestKubeProxyAsAServiceOfJoin has swdt alone bring the real kube-proxy.exe onto a Wine node, by `network install` and
// `join`: it programs Services, follows their endpoints, is restarted, pushed and rolled back, programs all Services again
// after HNS has lost everything, and is replaced by other versions. Wine's SCM has no recovery actions, so the test does not
// kill it.
func TestKubeProxyAsAServiceOfJoin(t *testing.T) {
	c := clusterSandbox(t)
	n := proxyNode{cluster: c, config: withKubeProxy(t, c.joinFile(t, credentialsOf(t, c.sandboxInfo), joinWith{}), labKubeProxy(t))}
	n.logsAtFailure(t)
	server := n.kubectl(t, "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
	n.installFlannel(t, "service", flannelOfLinux, "--no-wait", "--api-server", strings.TrimPrefix(server, "https://"),
		"--pod-cidr", "10.244.0.0/16", "--service-cidr", "10.96.0.0/12")
	n.prepareHNSNetwork(t, "flannel.4096", "1B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44")
	ok(t, "join", "-c", n.config, "--kubeconfig", c.Kubeconfig, "--allow-reboot")
	c.expectNode(t, "wine-1", "Ready", kubeProxyVersion)
	nothingToDo(t, n)

	const services = 5
	n.apply(t, manyServices(services, 2*services))
	n.programs(t, services, 2*services)
	n.kubectl(t, "delete", "service", "many-0")
	n.kubectl(t, "delete", "endpointslice", "many-1")
	n.programs(t, services-2, 2*(services-2))
	n.apply(t, manyServices(services, 2*services))
	n.programs(t, services, 2*services)

	n.hnsStartsAnew(t, services)
	n.isRestarted(t)
	n.push(t)
	n.isRolledBack(t, services)
	n.takesOtherVersions(t, services)
}

// hnsStartsAnew takes all objects from HNS, as a crash of HNS does, and makes the network of pods with another ID, as the
// program of the pod network does then. kube-proxy programs all Services again.
func (n proxyNode) hnsStartsAnew(t *testing.T, services int) {
	t.Helper()
	for _, kind := range []string{"networks", "loadbalancers", "endpoints"} {
		if err := os.RemoveAll(filepath.Join(n.hns(), kind)); err != nil {
			t.Fatal(err)
		}
	}
	n.prepareHNSNetwork(t, "flannel.4096", "6D0F1E7A-93C4-4C0B-A0B5-2F8A64D4C7E1")
	n.programs(t, services, 2*services)
}

// isRolledBack puts the first kube-proxy back.
func (n proxyNode) isRolledBack(t *testing.T, services int) {
	t.Helper()
	mark := n.calls(t)
	file := nodeFile(t, credentialsOf(t, n.sandboxInfo), provisioner("kube-proxy", kubeProxyVersion, labKubeProxy(t),
		`C:\k\kube-proxy.exe`, ""))
	ok(t, "rollback", "kube-proxy", "-c", file)
	within(t, 3*time.Minute, kubeProxyVersion+" programs all Services again", func() error {
		made := n.calls(t).since(mark)["HcnCreateLoadBalancer"]
		if balancers, _ := n.programmed(t); made != balancers || made < services {
			return fmt.Errorf("%d load balancers made of %d", made, balancers)
		}
		return nil
	})
	if r := ok(t, "status", "-c", file, "-o", "json"); !strings.Contains(r.stdout, `"`+kubeProxyVersion+`"`) {
		t.Errorf("the status after a rollback: %s", r.stdout)
	}
}

// planted is the version of the kube-proxy without the feature gates that 1.38 lacks.
const planted = "v1.38.0-planted"

// takesOtherVersions pushes an older kube-proxy.exe and the planted 1.38 to the service that a join has made: each programs
// all Services with the flags of that service. The planted one ends with the gates that the published image's script sets.
func (n proxyNode) takesOtherVersions(t *testing.T, services int) {
	t.Helper()
	for _, version := range []string{"v1.35.4", planted} {
		mark := n.calls(t)
		file := nodeFile(t, credentialsOf(t, n.sandboxInfo), provisioner("kube-proxy", version,
			lab(t, "node/kube-proxy-"+strings.TrimPrefix(version, "v")+".exe"), `C:\k\kube-proxy.exe`, ""))
		pushed := decoded[report](t, ok(t, "kubernetes", "-c", file, "--only", "kube-proxy", "-o", "json"))
		if len(pushed.Nodes) != 1 || len(pushed.Nodes[0].Components) != 1 || pushed.Nodes[0].Components[0].Version.After != version {
			t.Fatalf("the push of %s: %+v", version, pushed)
		}
		within(t, 3*time.Minute, version+" programs all Services", func() error {
			made := n.calls(t).since(mark)["HcnCreateLoadBalancer"]
			if balancers, _ := n.programmed(t); made != balancers || made < services {
				return fmt.Errorf("%d load balancers made of %d", made, balancers)
			}
			return nil
		})
	}
	old := swdt(t, "exec", "-c", n.config, "--", `C:\k\kube-proxy.exe`, "--proxy-mode=kernelspace", "--hostname-override=wine-1",
		`--kubeconfig=C:\etc\kubernetes\kube-proxy.conf`, "--feature-gates=WinDSR=true")
	if old.code != 1 || !strings.Contains(old.stdout+old.stderr, "unrecognized feature gate: WinDSR") {
		t.Errorf("the planted 1.38 with the gates of the published script: exit code %d\n%s%s", old.code, old.stdout, old.stderr)
	}
}

// withKubeProxy adds a kube-proxy.exe to a node file.
func withKubeProxy(t *testing.T, file, exe string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "    kubelet:\n", "    kubelet:\n      kubeProxySource: "+exe+"\n", 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// installFlannel installs flannel's names with a DaemonSet, and records how the cluster runs kube-proxy.
func (n proxyNode) installFlannel(t *testing.T, form, daemonSet string, more ...string) {
	t.Helper()
	ok(t, append([]string{"network", "install", "flannel", "--kubeconfig", n.Kubeconfig, "--kube-proxy", form,
		"--no-windows-flannel", "--manifest", textFile(t, flannelNames+daemonSet)}, more...)...)
}

// nothingToDo checks that a second join finds nothing to do.
func nothingToDo(t *testing.T, n proxyNode) {
	t.Helper()
	if r := ok(t, "join", "-c", n.config, "--kubeconfig", n.Kubeconfig, "-o", "json"); !strings.Contains(r.stdout, `"result": "unchanged"`) {
		t.Errorf("a second join changed something:\n%s", r.stdout)
	}
}

// programs waits until HNS has a load balancer for each of the test's Services with endpoints, and for those of the
// cluster, and an endpoint for each address of the test's EndpointSlices. kube-proxy leaves no other endpoints of the test.
func (n proxyNode) programs(t *testing.T, services, endpoints int) {
	t.Helper()
	within(t, 3*time.Minute, fmt.Sprintf("load balancers of %d Services", services), func() error {
		state := hnsState(t, n.config)
		addresses, vips := 0, map[string]bool{}
		for _, e := range state.Endpoints {
			if strings.HasPrefix(e.IP(), "203.0.") {
				addresses++
			}
		}
		for _, b := range state.LoadBalancers {
			for _, vip := range b.VIPs {
				vips[vip] = true
			}
		}
		programmed := 0
		for _, address := range strings.Fields(n.kubectl(t, "get", "services", "-o",
			`jsonpath={.items[?(@.metadata.name!="kubernetes")].spec.clusterIP}`)) {
			if vips[address] {
				programmed++
			}
		}
		if programmed != services || addresses != endpoints {
			return fmt.Errorf("%d Services and %d endpoints, want %d and %d", programmed, addresses, services, endpoints)
		}
		return nil
	})
}

// isRestarted stops and starts the service. kube-proxy makes all load balancers again.
func (n proxyNode) isRestarted(t *testing.T) {
	t.Helper()
	mark := n.calls(t)
	ok(t, "exec", "-c", n.config, "--", "net", "stop", "kube-proxy")
	ok(t, "exec", "-c", n.config, "--", "net", "start", "kube-proxy")
	within(t, 3*time.Minute, "kube-proxy to program all Services again", func() error {
		balancers, _ := n.programmed(t)
		if made := n.calls(t).since(mark)["HcnCreateLoadBalancer"]; made == 0 || made != balancers {
			return fmt.Errorf("%d load balancers made of %d", made, balancers)
		}
		return nil
	})
}
