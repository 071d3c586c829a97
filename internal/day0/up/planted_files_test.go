package up_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/netip"
	"strings"

	"github.com/swdt-dev/swdt/internal/day0/up"
)

const (
	otherRange = "choose another range in spec.network of the cluster's document"
	clusterOf  = "cluster.yaml:6: spec.network."
	nodeOf     = "cluster.yaml:16: spec.kubernetes.join."
)

// network returns a function that sets the fields of the cluster's network.
func network(fields string) func(*world) { return func(w *world) { w.network = fields } }

// control returns a function that sets the fields of the control plane.
func control(fields string) func(*world) { return func(w *world) { w.control = fields } }

// joins returns a function that sets the fields of the node's join.
func joins(fields string) func(*world) { return func(w *world) { w.join = fields } }

// mistakesInFiles are found by comparing the documents.
func mistakesInFiles() []mistake {
	const apart = "plugin: none, podSubnet: 10.200.0.0/16, serviceSubnet: 10.201.0.0/16"
	return []mistake{
		{is: "the ranges of pods and Services overlap", found: inFiles,
			words:  []string{clusterOf + "serviceSubnet: overlaps podSubnet (10.96.0.0/12)"},
			remedy: "choose another range for one of them",
			plant:  network("plugin: none, podSubnet: 10.96.0.0/12"), cure: network(apart)},
		{is: "the SSH address of a node is in the range of the pods", found: inFiles,
			words: []string{"cluster.yaml:12: spec.credentials.hostname: 10.244.3.4 is in 10.244.0.0/16"}, remedy: otherRange,
			plant: func(w *world) { w.host = "10.244.3.4" }, cure: network(apart)},
		{is: "the node's IP is in the range of the Services", found: inFiles,
			words: []string{nodeOf + "nodeIP: 10.96.7.7 is in 10.96.0.0/16"}, remedy: otherRange,
			plant: joins("nodeIP: 10.96.7.7"), cure: network(apart)},
		{is: "the address of the API server for nodes is in the range of the pods", found: inFiles,
			words: []string{nodeOf + "controlPlaneAlias.ip: 10.244.0.9 is in 10.244.0.0/16"}, remedy: otherRange,
			plant: joins("controlPlaneAlias: {name: cp.example, ip: 10.244.0.9}"), cure: network(apart)},
		{is: "the address of a VM is in the range of the pods", found: inFiles,
			words: []string{"spec.machine.network.address: 10.244.9.9 is in 10.244.0.0/16"}, remedy: otherRange,
			plant: func(w *world) { w.host, w.more = "", vmOn("mode: bridge, bridge: br0, address: 10.244.9.9") },
			cure:  network(apart)},
		{is: "QEMU's own network of a VM overlaps the range of the pods", found: inFiles,
			words:  []string{"spec.machine.network.mode: is user, whose network 10.0.2.0/24 overlaps 10.0.0.0/14"},
			remedy: otherRange,
			plant: func(w *world) {
				w.host, w.more, w.network = "", vmOn("mode: user, outbound: true"), "plugin: none, podSubnet: 10.0.0.0/14"
			}, cure: network(apart)},
		{is: "a VM in QEMU's own network that reaches nothing", found: inFiles,
			words:  []string{"spec.machine.network.outbound: is not set, so the VM cannot reach the API server"},
			remedy: "write outbound: true, or use mode: bridge",
			plant:  func(w *world) { w.host, w.more = "", vmOn("mode: user") },
			cure:   func(w *world) { w.more = vmOn("mode: user, outbound: true") }},
		{is: "two nodes have the same name in the cluster", found: inFiles,
			words:  []string{"cluster.yaml:26: spec.kubernetes.join.nodeName: win-a is also that of node win-1"},
			remedy: "give each node its own, or leave it out",
			plant:  func(w *world) { w.join, w.second = "nodeName: win-a", second("nodeName: win-a") },
			cure:   func(w *world) { w.second = second("nodeName: win-b") }},
		{is: "two nodes have the same IP", found: inFiles,
			words:  []string{"spec.kubernetes.join.nodeIP: 192.168.122.5 is also that of node win-1"},
			remedy: "give each node its own, or leave it out",
			plant:  func(w *world) { w.join, w.second = "nodeIP: 192.168.122.5", second("nodeIP: 192.168.122.5") },
			cure:   func(w *world) { w.second = second("nodeIP: 192.168.122.6") }},
		{is: "a proxy for the node without an exception for the API server", found: inFiles,
			words: []string{"spec.setup.environment.HTTPS_PROXY: sends the kubelet's requests to the API server " +
				"dev-control-plane:6443 through the proxy"},
			remedy: "add dev-control-plane to NO_PROXY",
			plant:  func(w *world) { w.more = environment("HTTPS_PROXY: 'http://10.0.0.9:3128'") },
			cure: func(w *world) {
				w.more = environment("HTTPS_PROXY: 'http://10.0.0.9:3128', NO_PROXY: 'dev-control-plane,10.244.0.0/16'")
			}},
		{is: "the node's document has no containerd", found: inFiles,
			words:  []string{"spec.kubernetes.containerd.version: is missing"},
			remedy: "write the version of containerd to install, such as 1.7.12, or its source",
			plant:  func(w *world) { w.containerd = "" }, cure: func(w *world) { w.containerd = "version: 1.7.12" }},
		{is: "a pod network that swdt does not install", found: inFiles, words: []string{clusterOf + `plugin: "cilium"`},
			remedy: "is not one of calico, flannel, antrea, none; write one of these", plant: network("plugin: cilium"),
			cure: network("plugin: none")},
		{is: "a misspelt field", found: inFiles, words: []string{"cluster.yaml:6: spec.network.podSubnets"},
			remedy: "podSubnet", plant: network("plugin: none, podSubnets: 10.200.0.0/16"), cure: network(apart)},
		{is: "neither kind nor an existing control plane", found: inFiles,
			words:  []string{"spec.controlPlane: names no control plane"},
			remedy: "write controlPlane: {kind: {}} for a new cluster", plant: control(""), cure: control("kind: {}")},
		{is: "a registry mirror at the loopback address", found: inFiles,
			words:  []string{"cluster.yaml:5: spec.controlPlane.kind.registryMirrors[0].endpoints[0]: is the loopback address"},
			remedy: "write an address of your machine that containers reach",
			plant:  control(mirror("http://127.0.0.1:5000")), cure: control(mirror("http://172.18.0.1:5000"))},
	}
}

func vmOn(network string) string { return "  machine: {network: {" + network + "}}\n" }

func environment(fields string) string { return "  setup: {environment: {" + fields + "}}\n" }

func second(join string) string {
	return "  credentials: {username: Administrator, hostname: 192.168.122.7}\n  kubernetes:\n" +
		"    version: 1.36.3\n    containerd: {version: 1.7.12}\n    join: {" + join + "}\n"
}

func mirror(endpoint string) string {
	return "kind: {registryMirrors: [{registry: docker.io, endpoints: ['" + endpoint + "']}]}"
}

const manifest = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: installations.operator.tigera.io}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tigera-operator, namespace: tigera-operator}
`

// mistakesOfManifests are mistakes of the pod network's manifest. In all runs, up only compares, since
// nothing would run the pods of the manifest.
func mistakesOfManifests() []mistake {
	compare := func(fields string) func(*world) {
		return func(w *world) {
			w.write("calico.yaml", manifest)
			crds, operator, _ := strings.Cut(manifest, "---\n")
			w.write("crds.yaml", crds)
			w.write("operator.yaml", operator)
			w.write("antrea.yml", antreaManifest)
			w.write("antrea-windows.yml", antreaWindows)
			w.write("flannel.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-flannel-cfg}\n")
			w.network, w.options.DryRun, w.options.Only = fields, true, []string{up.Cluster, up.Network}
		}
	}
	sum := sha256.Sum256([]byte(manifest))
	right, wrong := hex.EncodeToString(sum[:]), strings.Repeat("0a", 32)
	good := compare("plugin: calico, manifest: calico.yaml, sha256: " + right)
	return []mistake{
		{is: "a manifest with another hash", found: inFiles,
			words:  []string{clusterOf + "sha256: is " + wrong, "calico.yaml has " + right},
			remedy: "find out who changed the file, or correct the hash",
			plant:  compare("plugin: calico, manifest: calico.yaml, sha256: " + wrong), cure: good},
		{is: "a hash that is none", found: inFiles, words: []string{clusterOf + "sha256: is not a SHA-256"},
			remedy: "write 64 hexadecimal digits, as sha256sum prints them",
			plant:  compare("plugin: calico, manifest: calico.yaml, sha256: abc"), cure: good},
		{is: "a manifest that does not exist", found: inFiles, words: []string{clusterOf + "manifest: there is no file "},
			remedy: "correct the path", plant: compare("plugin: calico, manifest: nowhere.yaml"), cure: good},
		{is: "the manifest of another program", found: inFiles,
			words:  []string{clusterOf + "manifest: ", "has no Deployment tigera-operator"},
			remedy: "name one of calico", plant: compare("plugin: calico, manifest: flannel.yaml"), cure: good},
		{is: "Calico 3.30 or later without its CustomResourceDefinitions", found: inFiles,
			words:  []string{clusterOf + "manifest: ", "Calico has it in operator-crds.yaml"},
			remedy: "operator-crds.yaml in crdManifest",
			plant:  compare("plugin: calico, manifest: operator.yaml"),
			cure:   compare("plugin: calico, manifest: operator.yaml, crdManifest: crds.yaml")},
		{is: "a manifest of CustomResourceDefinitions with another hash", found: inFiles,
			words:  []string{clusterOf + "crdSHA256: is " + wrong, "crds.yaml has "},
			remedy: "find out who changed the file, or correct the hash",
			plant:  compare("plugin: calico, manifest: operator.yaml, crdManifest: crds.yaml, crdSHA256: " + wrong),
			cure:   compare("plugin: calico, manifest: operator.yaml, crdManifest: crds.yaml")},
		{is: "a manifest of CustomResourceDefinitions that does not exist", found: inFiles,
			words: []string{clusterOf + "crdManifest: there is no file "}, remedy: "correct the path",
			plant: compare("plugin: calico, manifest: operator.yaml, crdManifest: nowhere.yaml"),
			cure:  compare("plugin: calico, manifest: operator.yaml, crdManifest: crds.yaml")},
		{is: "a version of the pod network whose hash is not known", found: inFiles,
			words:  []string{clusterOf + "sha256: is missing", "v9.9.9/manifests/tigera-operator.yaml"},
			remedy: "verify that file and write its hash, or download it, read it, and name the file in manifest",
			plant:  compare("plugin: calico, version: 9.9.9"), cure: good},
		{is: "a manifest at a URL without a hash", found: inFiles,
			words:  []string{clusterOf + "sha256: is missing", "https://mirror.example/calico.yaml"},
			remedy: "verify that file and write its hash",
			plant:  compare("plugin: calico, manifest: 'https://mirror.example/calico.yaml'"), cure: good},
		{is: "a version beside a manifest", found: inFiles, words: []string{clusterOf + "manifest: is set beside version"},
			remedy: "leave version out",
			plant:  compare("plugin: calico, manifest: calico.yaml, version: 3.28.5"), cure: good},
		{is: "Antrea without the hashes of its manifests", found: inFiles,
			words: []string{clusterOf + "windowsSHA256: is missing", clusterOf + "sha256: is missing",
				"/v2.7.0/antrea-windows-with-ovs.yml"},
			remedy: "download it, read it, and name the file in windowsManifest",
			plant:  compare("plugin: antrea"), cure: compare(bothOfAntrea)},
		{is: "Antrea without its manifest for Windows", found: inFiles,
			words:  []string{clusterOf + "manifest: ", "it has no DaemonSet antrea-agent-windows"},
			remedy: "name antrea.yml there, and antrea-windows-with-ovs.yml in windowsManifest",
			plant:  compare("plugin: antrea, manifest: antrea.yml"), cure: compare(bothOfAntrea)},
		{is: "a manifest of Antrea for Windows that does not exist", found: inFiles,
			words:  []string{clusterOf + "windowsManifest: there is no file "},
			remedy: "correct the path",
			plant:  compare("plugin: antrea, manifest: antrea.yml, windowsManifest: nowhere.yml"), cure: compare(bothOfAntrea)},
		{is: "a second manifest of a network that has only one", found: inFiles,
			words:  []string{clusterOf + "windowsManifest: is set, although plugin is calico"},
			remedy: "remove it: only antrea has a manifest for Windows",
			plant:  compare("plugin: calico, manifest: calico.yaml, windowsManifest: calico.yaml"), cure: good},
	}
}

const bothOfAntrea = "plugin: antrea, manifest: antrea.yml, windowsManifest: antrea-windows.yml"

// Manifests in the shape of Antrea's.
const (
	antreaManifest = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: antrea-agent, namespace: kube-system}\n"
	antreaWindows  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: antrea-windows-config, namespace: kube-system}\n" +
		"---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: antrea-agent-windows, namespace: kube-system}\n" +
		"spec: {template: {spec: {securityContext: {windowsOptions: {hostProcess: true}}}}}\n"
)

// ownNetwork returns a network of this machine, other than loopback, as a range that is large enough
// for pods.
func ownNetwork(w *world) netip.Prefix {
	w.t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, address := range addresses {
		own, err := netip.ParsePrefix(address.String())
		if err == nil && own.Addr().Is4() && !own.Addr().IsLoopback() {
			return netip.PrefixFrom(own.Addr(), 24).Masked()
		}
	}
	w.t.Fatal("this machine has no network with which a range could overlap")
	return netip.Prefix{}
}
