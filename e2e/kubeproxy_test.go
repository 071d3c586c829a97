//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/proof/scale"
)

// kubeProxyVersion is the version of the lab's kube-proxy.exe.
const kubeProxyVersion = "v1.36.3"

// proxyNode is a Wine node in a real cluster. Its kube-proxy is the real one, runs as a service, and
// programs the Wine node's imitation of HNS, whose objects are files.
type proxyNode struct {
	cluster
	config string // node file
}

// newProxyNode returns such a node with a kube-proxy.exe. Its service kube-proxy is not started yet.
func newProxyNode(t testing.TB, kubeProxy string) proxyNode {
	t.Helper()
	c := clusterSandbox(t)
	n := proxyNode{cluster: c, config: c.joinFile(t, credentialsOf(t, c.sandboxInfo), joinWith{})}
	ok(t, "join", "-c", n.config, "--kubeconfig", c.Kubeconfig, "--allow-reboot")
	c.expectNode(t, "wine-1", "Ready", kubeProxyVersion)
	n.prepareHNS(t)
	ok(t, "cp", "-c", n.config, kubeProxy, `node:C:\k\kube-proxy.exe`)
	ok(t, "cp", "-c", n.config, textFile(t, n.kubeconfig(t)), `node:C:\k\kube-proxy.conf`)
	n.put(t, "", `C:\var\log\kube-proxy\.keep`) // kube-log-runner does not create the folder of its log
	createService(t, n.config, "kube-proxy", kubeProxyCommand, "depend=", "containerd")
	n.logsAtFailure(t)
	return n
}

// logsAtFailure prints the end of kube-proxy's log if the test fails.
func (n proxyNode) logsAtFailure(t testing.TB) {
	t.Cleanup(func() {
		if t.Failed() {
			log, err := os.ReadFile(filepath.Join(n.Prefix, "drive_c/var/log/kube-proxy/kube-proxy.log"))
			t.Logf("the end of kube-proxy's log:\n%s%v", log[max(0, len(log)-20_000):], err)
		}
	})
}

const kubeProxyCommand = `C:\k\kube-log-runner.exe --log-file=C:/var/log/kube-proxy/kube-proxy.log ` +
	`C:\k\kube-proxy.exe --windows-service --kubeconfig=C:/k/kube-proxy.conf --hostname-override=wine-1 --network-name=cbr0 ` +
	`--healthz-bind-address=127.0.0.1:10256 --v=2`

// labKubeProxy returns the path of the published kube-proxy.exe. Like clusterSandbox, it skips the test if
// the lab's control plane is not required.
func labKubeProxy(t testing.TB) string {
	t.Helper()
	if os.Getenv("SWDT_LAB_CLUSTER") != "required" {
		t.Skip("joins a real control plane: run make e2e")
	}
	return lab(t, "node/kube-proxy-1.36.3.exe")
}

// prepareHNS plants what kube-proxy expects of a node: the network of its pods, which a network plugin
// makes. HNS counts the calls from now on.
func (n proxyNode) prepareHNS(t testing.TB) {
	n.prepareHNSNetwork(t, "cbr0", "1B5C9C50-5B0B-4B7E-8C5C-0C6E2A1F3D44")
}

// prepareHNSNetwork is prepareHNS for a network of another name and ID.
func (n proxyNode) prepareHNSNetwork(t testing.TB, network, id string) {
	t.Helper()
	for name, content := range map[string]string{
		"networks/" + id + ".json": `{"ID":"` + id + `","Name":"` + network + `","Type":"L2Bridge","SchemaVersion":{"Major":2,"Minor":0},` +
			`"Ipams":[{"Type":"Static","Subnets":[{"IpAddressPrefix":"10.244.1.0/24"}]}]}`,
		"calls/.keep": "",
	} {
		path := filepath.Join(n.hns(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// hns returns the folder with the objects of the imitation of HNS.
func (n proxyNode) hns() string { return filepath.Join(n.Prefix, "drive_c/ProgramData/swdt-hns") }

// kubeconfig returns a kubeconfig for an account that has the rights of kube-proxies.
func (n proxyNode) kubeconfig(t testing.TB) string {
	t.Helper()
	n.kubectl(t, "create", "serviceaccount", "lab-proxy", "-n", "kube-system")
	n.kubectl(t, "create", "clusterrolebinding", "lab-proxy", "--clusterrole=system:node-proxier",
		"--serviceaccount=kube-system:lab-proxy")
	field := func(path string) string {
		return n.kubectl(t, "config", "view", "--raw", "--flatten", "--minify", "-o", "jsonpath={"+path+"}")
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: %q, certificate-authority-data: %q}}]
users: [{name: lab-proxy, user: {token: %q}}]
contexts: [{name: lab, context: {cluster: lab, user: lab-proxy}}]
current-context: lab
`, field(".clusters[0].cluster.server"), field(".clusters[0].cluster.certificate-authority-data"),
		n.kubectl(t, "create", "token", "lab-proxy", "-n", "kube-system", "--duration", "24h"))
}

// programmed returns the numbers of load balancers and endpoints that HNS has.
func (n proxyNode) programmed(t *testing.T) (balancers, endpoints int) {
	t.Helper()
	count := func(kind string) int {
		files, err := filepath.Glob(filepath.Join(n.hns(), kind, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	return count("loadbalancers"), count("endpoints")
}

// TestScaleOfRealKubeProxy measures the real kube-proxy with swdt scale before and after a push of an
// edited one, and counts the calls of HNS by both.
func TestScaleOfRealKubeProxy(t *testing.T) {
	n := newProxyNode(t, labKubeProxy(t))
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	const services, endpoints = 100, 300
	n.apply(t, manyServices(services, endpoints))
	ok(t, "exec", "-c", n.config, "--", "net", "start", "kube-proxy")
	n.countsFirstSync(t, services, endpoints)
	n.countsLaterSyncs(t)
	n.isListed(t, services)

	folder := t.TempDir()
	before, after := filepath.Join(folder, "before"), filepath.Join(folder, "after")
	small := load{services: 100, endpoints: 300, changes: 10}
	original := n.measure(t, before, small)
	n.push(t)
	edited := n.measure(t, after, small)
	if made, lookups := original["HcnCreateEndpoint"], original["HcnEnumerateNetworks"]; lookups < made {
		t.Errorf("kube-proxy made %d endpoints, and looked its network up %d times", made, lookups)
	}
	if made, lookups := edited["HcnCreateEndpoint"], edited["HcnEnumerateNetworks"]; lookups >= made {
		t.Errorf("the edited kube-proxy made %d endpoints, and looked its network up %d times", made, lookups)
	}
	if r := swdt(t, "scale", "compare", before, after); r.code != 0 && r.code != exitFinding {
		t.Errorf("exit code %d", r.code)
	}
}

// manyServices returns a manifest with Services and their EndpointSlices. The Services have no selector.
func manyServices(services, endpoints int) string {
	var manifest strings.Builder
	each := endpoints / services
	for i := range services {
		fmt.Fprintf(&manifest, `---
{apiVersion: v1, kind: Service, metadata: {name: many-%[1]d}, spec: {ports: [{name: http, port: 80, targetPort: 8080}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, metadata: {name: many-%[1]d,
  labels: {kubernetes.io/service-name: many-%[1]d}}, ports: [{name: http, port: 8080, protocol: TCP}], endpoints: [`, i)
		for e := range each {
			number := i*each + e
			fmt.Fprintf(&manifest, "{addresses: [203.0.%d.%d]},", number/250, number%250+1)
		}
		manifest.WriteString("]}\n")
	}
	return manifest.String()
}

// countsFirstSync checks that kube-proxy programs all Services, and which calls of HNS that takes: 9 for
// each endpoint and 3 for each load balancer, besides the listings.
func (n proxyNode) countsFirstSync(t *testing.T, services, endpoints int) {
	t.Helper()
	var made calls
	within(t, 3*time.Minute, "kube-proxy programs all Services", func() error {
		// The cluster has Services of its own.
		s, e := n.programmed(t)
		if s <= services || e <= endpoints {
			return fmt.Errorf("%d load balancers and %d endpoints", s, e)
		}
		made = n.calls(t)
		if made.syncs() < 2 {
			return errors.New("the IP families have not synchronized")
		}
		// Before the first sync it looks the network up for each family and before them, and removes
		// load balancers, of which there are none.
		start := calls{"HcnEnumerateNetworks": 3, "HcnOpenNetwork": 3, "HcnQueryNetworkProperties": 3,
			"HcnCloseNetwork": 3, "HcnEnumerateLoadBalancers": 2}
		want := start.plus(creations(s, e)).plus(
			listings(made.syncs(), made["HcnOpenLoadBalancer"], made["HcnOpenEndpoint"]))
		if diff := cmp.Diff(want, made); diff != "" {
			return fmt.Errorf("%d load balancers and %d endpoints: calls (-want +got):\n%s", s, e, diff)
		}
		return nil
	})
	t.Logf("%d calls: %v", made.total(), made)
}

// countsLaterSyncs checks that a sync without changes lists all that HNS has.
func (n proxyNode) countsLaterSyncs(t *testing.T) {
	t.Helper()
	mark := n.calls(t)
	within(t, 3*time.Minute, "two more syncs", func() error {
		more := n.calls(t).since(mark)
		if more.syncs() < 2 {
			return fmt.Errorf("%d syncs", more.syncs())
		}
		s, e := n.programmed(t)
		want := listings(more.syncs(), more.syncs()*s, more.syncs()*e)
		if diff := cmp.Diff(want, more); diff != "" {
			return fmt.Errorf("%d syncs of %d load balancers and %d endpoints: calls (-want +got):\n%s", more.syncs(), s, e,
				diff)
		}
		t.Logf("%d calls for each of %d syncs of %d load balancers and %d endpoints", more.total()/more.syncs(),
			more.syncs(), s, e)
		return nil
	})
}

// isListed checks that swdt lists what kube-proxy has programmed.
func (n proxyNode) isListed(t *testing.T, services int) {
	t.Helper()
	state := hnsState(t, n.config)
	s, e := n.programmed(t)
	if len(state.LoadBalancers) != s || len(state.Endpoints) != e {
		t.Errorf("swdt lists %d load balancers of %d and %d endpoints of %d", len(state.LoadBalancers), s,
			len(state.Endpoints), e)
	}
	addresses := strings.Fields(n.kubectl(t, "get", "services", "-o", "jsonpath={.items[*].spec.clusterIP}"))
	listed := map[string]bool{}
	for _, balancer := range state.LoadBalancers {
		for _, vip := range balancer.VIPs {
			listed[vip] = true
		}
	}
	if len(addresses) <= services {
		t.Errorf("the cluster has %d Services, want more than %d", len(addresses), services)
	}
	for _, address := range addresses {
		if !listed[address] {
			t.Errorf("swdt lists no load balancer for the Service with address %s", address)
		}
	}
}

// load is the load of one run of swdt scale.
type load struct{ services, endpoints, changes int }

// measure measures the node's kube-proxy, and returns its calls of HNS meanwhile.
func (n proxyNode) measure(t testing.TB, folder string, l load) calls {
	t.Helper()
	mark := n.calls(t)
	r := swdtWithin(t, 25*time.Minute, "scale", "run", "-c", n.config, "--kubeconfig", n.Kubeconfig, "--services",
		strconv.Itoa(l.services), "--endpoints", strconv.Itoa(l.endpoints), "--changes", strconv.Itoa(l.changes),
		"--yes", "--out", folder, "-o", "json")
	if r.code != 0 {
		t.Fatalf("exit code %d", r.code)
	}
	report := decoded[scale.Report](t, r)
	if report.Result != scale.Programmed || len(report.Nodes) != 1 || len(report.Nodes[0].Phases) != 3 {
		t.Fatalf("result %q of %d nodes", report.Result, len(report.Nodes))
	}
	for i, want := range []int{l.services, l.changes, l.services} {
		p := report.Nodes[0].Phases[i]
		if p.Programmed != want || !p.Metrics || !p.ProxySettled || p.Syncs.Count == 0 || p.CPU.ProxySeconds <= 0 ||
			p.ProxyMemoryBytes == 0 || p.ProxyRestarts > 0 {
			t.Errorf("phase %s: %+v", p.Phase, p)
		}
	}
	made := n.calls(t).since(mark)
	t.Logf("%d calls in %d syncs: %v", made.total(), made.syncs(), made)
	return made
}

// BenchmarkScaleOfRealKubeProxy measures one run with the numbers for which SIG Windows published times,
// which takes minutes. SWDT_KUBE_PROXY names another kube-proxy.exe than the lab's.
func BenchmarkScaleOfRealKubeProxy(b *testing.B) {
	kubeProxy := os.Getenv("SWDT_KUBE_PROXY")
	if kubeProxy == "" {
		kubeProxy = labKubeProxy(b)
	}
	n := newProxyNode(b, kubeProxy)
	b.Setenv("XDG_DATA_HOME", b.TempDir())
	ok(b, "exec", "-c", n.config, "--", "net", "start", "kube-proxy")
	for b.Loop() {
		folder := filepath.Join(b.TempDir(), "run")
		made := n.measure(b, folder, load{services: scale.DefaultServices, endpoints: scale.DefaultEndpoints,
			changes: scale.DefaultChanges})
		b.ReportMetric(float64(made.total()), "calls/op")
		b.ReportMetric(float64(made.syncs()), "syncs/op")
		b.Log(ok(b, "scale", "report", folder, "-o", "wide").stdout)
	}
}

// push pushes the edited kube-proxy. It finds the endpoints that the first one has left in HNS, and makes
// none again; it makes all load balancers again, since each kube-proxy removes those that it finds.
func (n proxyNode) push(t *testing.T) {
	t.Helper()
	mark := n.calls(t)
	file := nodeFile(t, credentialsOf(t, n.sandboxInfo), provisioner("kube-proxy", kubeProxyVersion+"-edited",
		lab(t, "node/kube-proxy-1.36.3-edited.exe"), `C:\k\kube-proxy.exe`, ""))
	pushed := decoded[report](t, ok(t, "push", "-c", file, "--only", "kube-proxy", "-o", "json"))
	if len(pushed.Nodes) != 1 || len(pushed.Nodes[0].Components) != 1 ||
		pushed.Nodes[0].Components[0].Version.After != kubeProxyVersion+"-edited" {
		t.Fatalf("the push: %+v", pushed)
	}
	within(t, 3*time.Minute, "the edited kube-proxy programs all Services", func() error {
		s, _ := n.programmed(t)
		if made := n.calls(t).since(mark); made["HcnCreateLoadBalancer"] != s || made["HcnCreateEndpoint"] != 0 {
			return fmt.Errorf("made %d load balancers of %d, and %d endpoints", made["HcnCreateLoadBalancer"], s,
				made["HcnCreateEndpoint"])
		}
		return nil
	})
}
