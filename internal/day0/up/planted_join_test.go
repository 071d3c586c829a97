package up_test

import (
	"net/http"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/day0/up"
	"github.com/swdt-dev/swdt/internal/platform"
)

// facts returns a function that changes the facts of the Windows node.
func facts(change func(*platform.Facts)) func(*world) {
	return func(w *world) { w.node.Machine.SetFacts(change) }
}

// mistakesOfNodes are mistakes of a Windows node, and of the way between the node and the API server.
func mistakesOfNodes() []mistake {
	right := facts(nil)
	leave := joins("")
	return []mistake{
		{is: "a Windows that Kubernetes does not support", found: inJoin, words: []string{"windows-version: ", "14393"},
			remedy: "use Windows Server 2019 (17763), 2022 (20348), 23H2 (25398) or 2025 (26100)",
			plant:  facts(func(f *platform.Facts) { f.Build = "14393.1" }), cure: right},
		{is: "Windows Server 2025 with Calico", found: inJoin, warns: true,
			words:  []string{"combinations: Calico's project does not support Windows Server 2025", "projectcalico/calico/issues/11691"},
			remedy: "use Windows Server 2022 for this node",
			plant:  facts(func(f *platform.Facts) { f.Build = "26100.33296" }), cure: right},
		{is: "containerd's snapshotter cimfs", found: inJoin, warns: true,
			words:  []string{"combinations: Windows crashes with containerd's snapshotter cimfs"},
			remedy: "leave the snapshotter out of containerd's configuration",
			plant: func(w *world) {
				w.containerd = `version: 2.4.2, config: "[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'cimfs'\n"`
			}, cure: func(w *world) { w.containerd = "version: 1.7.12" }},
		{is: "the SSH user is no administrator", found: inJoin, words: []string{"elevated: the user may not change"},
			remedy: "make spec.credentials.username a member of Administrators",
			plant:  facts(func(f *platform.Facts) { f.Elevated = false }), cure: right},
		{is: "too little disk space", found: inJoin, words: []string{"disk-space: too little free space on C:"},
			remedy: "make room: ",
			plant:  facts(func(f *platform.Facts) { f.DiskFree = 1e9 }), cure: right},
		{is: "the node's clock is an hour behind", found: inJoin, words: []string{"clock: the node's clock is 1h0m", "behind"},
			remedy: "set it: w32tm /resync /force",
			plant:  facts(func(f *platform.Facts) { f.Time = f.Time.Add(-time.Hour - 30*time.Second) }), cure: right},
		{is: "the API server's clock is ten minutes ahead", found: inJoin, words: []string{"clock: the node's clock is 10m"},
			remedy: "set it: w32tm /resync /force", fake: "an API server with another clock",
			plant: func(w *world) { w.server.SetClock(10*time.Minute + 30*time.Second) },
			cure:  func(w *world) { w.server.SetClock(0) }},
		{is: "another program has the kubelet's port", found: inJoin,
			words: []string{"ports: kubelet's port 10250 is in use by nginx.exe"}, remedy: "stop that program",
			plant: func(w *world) {
				if err := w.node.Machine.Spawn("nginx.exe").HandleHTTP("0.0.0.0:10250", http.NotFoundHandler()); err != nil {
					w.t.Fatal(err)
				}
			},
			cure: func(w *world) { w.node.Machine.Kill("nginx.exe") }},
		{is: "another containerd has the service's name", found: inJoin,
			words:  []string{"container-runtime: another containerd is installed", `D:\containerd\containerd.exe`},
			remedy: "sc.exe delete containerd",
			plant:  service("containerd", `D:\containerd\containerd.exe --run-service`), cure: noService("containerd")},
		{is: "a kubelet of an earlier installation", found: inJoin,
			words:  []string{"kubelet-service: the service kubelet runs under nssm", `C:\k\nssm.exe`},
			remedy: "sc.exe delete kubelet", plant: service("kubelet", `C:\k\nssm.exe`), cure: noService("kubelet")},
		{is: "the machine is a node of another cluster", found: inJoin,
			words:  []string{"leftovers: the machine is, or was, a node of a cluster", `C:\etc\kubernetes\kubelet.conf`},
			remedy: "run kubeadm reset on the machine and remove these files",
			plant:  func(w *world) { w.node.Machine.WriteFile(`C:\etc\kubernetes\kubelet.conf`, []byte("{}")) },
			cure: func(w *world) {
				if err := w.node.Machine.Process("kubeadm.exe").Files.Remove(`C:\etc\kubernetes\kubelet.conf`); err != nil {
					w.t.Fatal(err)
				}
			}},
		{is: "a firewall drops the node's packets to the API server", found: inJoin,
			words:  []string{"control-plane-reachable: no answer reaches the node from cp.example:"},
			remedy: "let the firewalls between the node and that address, and the control plane's own, pass TCP from the node",
			plant:  func(w *world) { w.behind(platform.TimedOut) },
			cure:   func(w *world) { w.node.Machine.SetName("cp.example", "127.0.0.1") }},
		{is: "the node has no route to the API server", found: inJoin,
			words:  []string{"control-plane-reachable: the node has no route to cp.example:"},
			remedy: "or set spec.kubernetes.join.controlPlaneEndpoint to an address that the node reaches",
			plant:  func(w *world) { w.behind(platform.NoRoute) },
			cure:   func(w *world) { w.join = "controlPlaneEndpoint: 'localhost:" + w.port() + "'" }},
		{is: "no DNS knows the name of the API server", found: inJoin,
			words:  []string{"control-plane-name: the node does not know the name cp.example"},
			remedy: "set spec.kubernetes.join.controlPlaneAlias to {name: cp.example, ip: …}",
			plant:  func(w *world) { w.join = "controlPlaneEndpoint: 'cp.example:" + w.port() + "'" },
			cure:   func(w *world) { w.join += ", controlPlaneAlias: {name: cp.example, ip: 127.0.0.1}" }},
		{is: "the API server's certificate has another name than the nodes use", found: inJoin,
			words: []string{"api-server-certificate: the API server's certificate is not for other.example", "it is for "},
			remedy: "set spec.kubernetes.join.controlPlaneEndpoint to one of these, or add other.example to the certificate " +
				"(kind: apiServerNames in the cluster's document; kubeadm: apiServer.certSANs)",
			plant: func(w *world) {
				w.join = "controlPlaneEndpoint: 'other.example:" + w.port() +
					"', controlPlaneAlias: {name: other.example, ip: 127.0.0.1}"
			},
			cure: func(w *world) { w.join = "controlPlaneEndpoint: 'localhost:" + w.port() + "'" }},
		{is: "a Node of another machine has the name", found: inJoin,
			words:  []string{"node-name: the cluster has a node win-1 already, which is Ready and another machine"},
			remedy: "set spec.kubernetes.join.nodeName",
			plant:  func(w *world) { w.plant(otherNode) }, cure: joins("nodeName: win-9")},
		{is: "a kubelet that is newer than the API server", found: inJoin,
			words:  []string{"version-skew: kubelet is newer than the API server"},
			remedy: "set spec.kubernetes.version to 1.36.3 or older", plant: func(w *world) { w.version = "1.37.0" },
			cure: func(w *world) { w.version = "1.36.3" }},
		{is: "a kubelet that is more than three minor versions older", found: inJoin,
			words:  []string{"version-skew: kubelet is 4 minor versions behind the API server"},
			remedy: "set spec.kubernetes.version to 1.33 or newer", plant: func(w *world) { w.version = "1.32.9" },
			cure: func(w *world) { w.version = "1.36.3" }},
		{is: "a bootstrap token that has expired", found: inJoin,
			words:  []string{"cluster-info: this cluster does not accept the bootstrap token abcdef"},
			remedy: "remove spec.kubernetes.join.token, and swdt makes one",
			plant:  joins("token: abcdef.0123456789abcdef"), cure: leave},
		{is: "the hash of another cluster's CA", found: inJoin,
			words:  []string{"cluster-info: spec.kubernetes.join.discoveryTokenCACertHash is not the hash of this cluster's CA"},
			remedy: "remove it, or correct it",
			plant:  joins("discoveryTokenCACertHash: 'sha256:" + strings.Repeat("0", 64) + "'"), cure: leave},
		{is: "the cluster has no settings for kubelets", found: inJoin,
			words:  []string{"kubelet-config: there is no ConfigMap kubelet-config in kube-system"},
			remedy: "run kubeadm init phase upload-config kubelet on the control plane",
			plant:  func(w *world) { w.server.RemoveOwned("configmaps", "kube-system", "kubelet-config") },
			cure: func(w *world) {
				w.plant("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kubelet-config, namespace: kube-system}\n" +
					"data: {kubelet: \"apiVersion: kubelet.config.k8s.io/v1beta1\\nkind: KubeletConfiguration\\n\"}\n")
			}},
	}
}

// behind gives the API server another address on the node, to which connections have an outcome.
func (w *world) behind(outcome platform.ReachOutcome) {
	const address = "10.20.30.40"
	w.join = "controlPlaneEndpoint: 'cp.example:" + w.port() + "'"
	w.node.Machine.SetName("cp.example", address)
	w.node.Machine.SetReach(address, outcome)
}

const otherNode = `apiVersion: v1
kind: Node
metadata: {name: win-1, labels: {kubernetes.io/os: windows}}
status:
  nodeInfo: {operatingSystem: windows, systemUUID: 4c4c4544-ffff-3510-8058-b4c04f4d5931}
  conditions: [{type: Ready, status: "True"}]
`

// service returns a function that registers a service on the node.
func service(name, commandLine string) func(*world) {
	return func(w *world) {
		w.t.Helper()
		config := &agentv1.ServiceConfig{Name: name, CommandLine: commandLine,
			StartType: agentv1.StartType_START_TYPE_MANUAL}
		if _, err := w.node.Services.Create(w.t.Context(), config); err != nil {
			w.t.Fatal(err)
		}
	}
}

func noService(name string) func(*world) {
	return func(w *world) {
		w.t.Helper()
		if err := w.node.Reconnect(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		if _, err := w.node.Services.Delete(w.t.Context(), &agentv1.DeleteServiceRequest{Name: name}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// objects returns a function that plants objects in the cluster.
func objects(manifests string) func(*world) { return func(w *world) { w.plant(manifests) } }

// removed returns a function that removes an object of the cluster.
func removed(resource, namespace, name string) func(*world) {
	return func(w *world) {
		w.t.Helper()
		if !w.server.RemoveOwned(resource, namespace, name) {
			w.t.Fatalf("there is no %s %s/%s", resource, namespace, name)
		}
	}
}

// mistakesOfNetworks are mistakes of the pod network that an existing cluster has. With plugin none, the
// node joins, and up warns before the join.
func mistakesOfNetworks() []mistake {
	const install = "`swdt network install calico` corrects it"
	changed := func(from, to string) func(*world) {
		return objects(strings.Replace(calico, from, to, 1))
	}
	without := func(w *world) {
		w.t.Helper()
		removed("installations.operator.tigera.io", "", "default")(w)
		removed("ipamconfigurations.projectcalico.org", "", "default")(w)
		removed("ippools.crd.projectcalico.org", "", "default-ipv4-ippool")(w)
	}
	flannelOnly := func(config string) func(*world) {
		return func(w *world) {
			without(w)
			w.plant(flannel(config))
		}
	}
	noProxy := removed("daemonsets.apps", "kube-system", "kube-proxy-windows")
	antreaOnly := func(settings string) func(*world) {
		return func(w *world) {
			without(w)
			noProxy(w)
			w.plant(antrea(settings))
		}
	}
	const works = `kubeAPIServerOverride: "10.0.0.1:6443", antreaProxy: {proxyAll: true}`
	return []mistake{
		{is: "Calico uses BGP", found: inJoin, warns: true, words: []string{"calico: Calico uses BGP", "bgp is Enabled"},
			remedy: install, plant: changed("bgp: Disabled", "bgp: Enabled"), cure: objects(calico)},
		{is: "Calico without its data plane for Windows", found: inJoin, warns: true,
			words: []string{"calicoNetwork.windowsDataplane is not set"}, remedy: install,
			plant: changed(", windowsDataplane: HNS", ""), cure: objects(calico)},
		{is: "Calico without strictAffinity", found: inJoin, warns: true,
			words: []string{"IPAM's strictAffinity is off"}, remedy: "`swdt network install calico` turns it on",
			plant: changed("strictAffinity: true", "strictAffinity: false"), cure: objects(calico)},
		{is: "Calico without the addresses of Services", found: inJoin, warns: true,
			words: []string{"calico: Calico on Windows lacks the addresses of services"}, remedy: install,
			plant: changed("  serviceCIDRs: [10.96.0.0/12]\n", ""), cure: objects(calico)},
		{is: "no ConfigMap kubernetes-services-endpoint", found: inJoin, warns: true,
			words: []string{"there is no ConfigMap tigera-operator/kubernetes-services-endpoint"}, remedy: install,
			plant: removed("configmaps", "tigera-operator", "kubernetes-services-endpoint"), cure: objects(calico)},
		{is: "a pool of Calico with IP in IP", found: inJoin, warns: true,
			words:  []string{"calico: Calico's pool default-ipv4-ippool uses IP in IP"},
			remedy: "`swdt network install calico --force` makes it VXLAN",
			plant:  changed("ipipMode: Never", "ipipMode: Always"), cure: objects(calico)},
		{is: "kube-proxy for Windows is missing", found: inJoin, warns: true,
			words: []string{"kube-proxy: kube-proxy does not run on Windows nodes"}, remedy: "`swdt network install calico` adds it",
			plant: removed("daemonsets.apps", "kube-system", "kube-proxy-windows"), cure: objects(calico)},
		{is: "kube-proxy for Windows without a command", found: inJoin, warns: true,
			words: []string{"kube-proxy: kube-proxy does not run on Windows nodes: it has no command",
				"DaemonSet kube-system/kube-proxy-windows: image sigwindowstools/kube-proxy:v1.36.3-calico-hostprocess"},
			remedy: "let swdt replace it in place: `swdt network install calico --force`",
			plant:  changed(",\n        args: [\"$env:CONTAINER_SANDBOX_MOUNT_POINT/kube-proxy/start.ps1\"]", ""),
			cure:   objects(calico)},
		{is: "kube-proxy for Windows of another version", found: inJoin, warns: true,
			words: []string{"kube-proxy: kube-proxy for Windows has another version than the cluster",
				"DaemonSet kube-system/kube-proxy-windows has sigwindowstools/kube-proxy:v1.30.1"},
			remedy: "set the DaemonSet's image to the tag of v1.36.3",
			plant:  changed("kube-proxy:v1.36.3", "kube-proxy:v1.30.1"), cure: objects(calico)},
		{is: "flannel with the VXLAN number of Linux", found: inJoin, warns: true,
			words:  []string{"flannel: flannel's VXLAN has a number that Windows does not take", "VNI is 1"},
			remedy: `edit net-conf.json in ConfigMap kube-flannel-cfg: "VNI": 4096, and restart flannel everywhere`,
			plant:  flannelOnly(`"VNI": 1, "Port": 4789`), cure: objects(flannel(`"VNI": 4096, "Port": 4789`))},
		{is: "flannel with the VXLAN port of Linux", found: inJoin, warns: true,
			words:  []string{"flannel: flannel's VXLAN has a port that Windows does not take", "Port is 8472"},
			remedy: `edit net-conf.json in ConfigMap kube-flannel-cfg: "Port": 4789, and restart flannel everywhere`,
			plant:  flannelOnly(`"VNI": 4096, "Port": 8472`), cure: objects(flannel(`"VNI": 4096, "Port": 4789`))},
		{is: "Antrea without the address of the API server", found: inJoin, warns: true,
			words:  []string{"antrea: Antrea's agent on Windows lacks the address of the API server"},
			remedy: "`swdt network install antrea` corrects it",
			plant:  antreaOnly("antreaProxy: {proxyAll: true}"), cure: objects(antrea(works))},
		{is: "Antrea with other tunnels on Windows than on Linux", found: inJoin, warns: true,
			words:  []string{"antrea: Antrea's tunnels on Windows are of another type than on Linux", "tunnelType is vxlan"},
			remedy: "`swdt network install antrea` corrects it",
			plant:  antreaOnly(works + ", tunnelType: vxlan"), cure: objects(antrea(works))},
		{is: "kube-proxy for Windows beside Antrea", found: inJoin, warns: true,
			words:  []string{"antrea: kube-proxy runs on Windows nodes beside Antrea"},
			remedy: "`kubectl delete daemonset kube-proxy-windows -n kube-system`",
			plant: func(w *world) {
				without(w)
				w.plant(antrea(works))
			}, cure: noProxy},
		{is: "the node's firewall does not let VXLAN in", found: inJoin, warns: true,
			words:  []string{"firewall: the node's firewall does not let UDP port 4789 in"},
			remedy: `add {name: VXLAN, protocol: udp, ports: "4789"} to spec.setup.firewall`,
			plant:  func(*world) {}, cure: func(w *world) {
				w.more = "  setup: {firewall: [{name: VXLAN, protocol: udp, ports: \"4789\"}]}\n"
				w.options.Only = append(w.options.Only, up.Setup)
			}},
		{is: "the node's firewall does not let Geneve in", found: inJoin, warns: true,
			words:  []string{"firewall: the node's firewall does not let UDP port 6081 in"},
			remedy: `add {name: Geneve, protocol: udp, ports: "6081"} to spec.setup.firewall`,
			plant:  antreaOnly(works), cure: func(w *world) {
				w.more = "  setup: {firewall: [{name: Geneve, protocol: udp, ports: \"6081\"}]}\n"
				w.options.Only = append(w.options.Only, up.Setup)
			}},
		{is: "a rule of the node's firewall blocks VXLAN", found: inJoin, warns: true,
			words:  []string{"firewall: the node's firewall blocks UDP port 4789"},
			remedy: "`swdt exec -- netsh advfirewall firewall delete rule name=lock`",
			plant:  blocked("udp", "4000-5000"), cure: unblocked},
		{is: "a rule of the node's firewall blocks the kubelet's port", found: inJoin, warns: true,
			words:  []string{"firewall: the node's firewall blocks TCP port 10250"},
			remedy: "`swdt exec -- netsh advfirewall firewall delete rule name=lock`",
			plant:  blocked("tcp", "10250"), cure: unblocked},
		{is: "another pod network than that of the document", found: inNetwork,
			words:  []string{clusterOf + "plugin: is flannel, but the cluster has the pod network calico already"},
			remedy: "write plugin: none to leave the cluster's network as it is",
			plant:  network("plugin: flannel"), cure: network("plugin: none")},
		{is: "no address of the API server that nodes can use", found: inNetwork,
			words:  []string{clusterOf + "plugin: cannot be installed: the cluster does not reveal an address of the API server"},
			remedy: "write plugin: none",
			plant:  network("plugin: calico"), cure: network("plugin: none")},
		{is: "another range of pods than the existing cluster's, with its pod network alone", found: inNetwork,
			words:  []string{clusterOf + "podSubnet: is 10.9.0.0/16, but the addresses of the existing cluster's pods are"},
			remedy: "leave the field out",
			plant: func(w *world) {
				w.network, w.options.Only = "plugin: calico, podSubnet: 10.9.0.0/16", []string{up.Network}
			},
			cure: func(w *world) { w.network = "plugin: none" }},
	}
}

// calico are the objects of a Calico, and of a kube-proxy, that work with Windows nodes.
const calico = `apiVersion: operator.tigera.io/v1
kind: Installation
metadata: {name: default}
spec:
  serviceCIDRs: [10.96.0.0/12]
  calicoNetwork: {bgp: Disabled, windowsDataplane: HNS}
---
apiVersion: projectcalico.org/v3
kind: IPAMConfiguration
metadata: {name: default}
spec: {strictAffinity: true}
---
apiVersion: crd.projectcalico.org/v1
kind: IPPool
metadata: {name: default-ipv4-ippool}
spec: {cidr: 192.168.0.0/16, vxlanMode: Always, ipipMode: Never}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kubernetes-services-endpoint, namespace: tigera-operator}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy-windows, namespace: kube-system}
spec:
  selector: {matchLabels: {app: kube-proxy}}
  template:
    metadata: {labels: {app: kube-proxy}}
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      containers: [{name: kube-proxy, image: 'sigwindowstools/kube-proxy:v1.36.3-calico-hostprocess',
        args: ["$env:CONTAINER_SANDBOX_MOUNT_POINT/kube-proxy/start.ps1"]}]
`

// flannel returns the objects of a flannel with these settings of VXLAN.
func flannel(vxlan string) string {
	return `apiVersion: v1
kind: ConfigMap
metadata: {name: kube-flannel-cfg, namespace: kube-flannel}
data: {net-conf.json: '{"Network": "192.168.0.0/16", "Backend": {"Type": "vxlan", ` + vxlan + `}}'}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-flannel-ds-windows-amd64, namespace: kube-system}
spec:
  selector: {matchLabels: {app: flannel}}
  template:
    metadata: {labels: {app: flannel}}
    spec: {nodeSelector: {kubernetes.io/os: windows}, containers: []}
`
}

// antrea returns the objects of an Antrea with these settings of its agents on Windows.
func antrea(settings string) string {
	return `apiVersion: v1
kind: ConfigMap
metadata: {name: antrea-config, namespace: kube-system}
data: {antrea-agent.conf: 'tunnelType: geneve'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: antrea-windows-config, namespace: kube-system}
data: {antrea-agent.conf: '{` + settings + `}'}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: antrea-agent-windows, namespace: kube-system}
spec:
  selector: {matchLabels: {app: antrea}}
  template:
    metadata: {labels: {app: antrea}}
    spec: {nodeSelector: {kubernetes.io/os: windows}, containers: []}
`
}

// blocked returns a function that adds a rule to the node's firewall, which blocks ports.
func blocked(protocol, ports string) func(*world) {
	return func(w *world) {
		w.t.Helper()
		rule := &agentv1.FirewallRule{Name: "lock", Enabled: true, Inbound: true, Protocol: protocol, Ports: ports,
			Profiles: "any"}
		if _, err := w.node.Firewall.Add(w.t.Context(), rule); err != nil {
			w.t.Fatal(err)
		}
	}
}

// unblocked removes that rule, as netsh does.
func unblocked(w *world) {
	w.t.Helper()
	if _, err := w.node.Firewall.Remove(w.t.Context(), &agentv1.RemoveFirewallRuleRequest{Name: "lock"}); err != nil {
		w.t.Fatal(err)
	}
}
