package preflight

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui/finding"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

const (
	aUUID  = "4c4c4544-0042-3510-8058-b4c04f4d5931"
	caHash = "sha256:aaaa"
)

// healthy returns the facts of a machine that can join.
func healthy() *facts {
	return &facts{
		kubelet: "1.36.1", kubeadm: "v1.36.1",
		node: &nodeFacts{
			machine: platform.Facts{
				Hostname: "WIN-1", Product: "Windows Server 2022 Datacenter", Build: "20348.2849",
				Architecture: "amd64",
				Memory:       16e9, MemoryFree: 11e9, SystemDrive: "C:", DiskFree: 60e9, Elevated: true,
				Virtualization: true,
			},
			name:  factOf("win-1", nil),
			clock: Clock{Ahead: 2 * time.Second, GiveOrTake: time.Millisecond},
			features: factOf(map[string]platform.FeatureState{containersFeature: platform.FeatureEnabled,
				hyperVFeature: platform.FeatureDisabled}, nil),
			services: factOf(map[string]Service{"sshd": {Name: "sshd", State: "running", PID: 100}}, nil),
			processes: factOf(map[uint32]platform.Process{
				100: {PID: 100, Name: "sshd.exe"},
			}, nil),
			listeners: factOf([]Listener{{Address: "0.0.0.0:22", Port: 22, PID: 100, Process: "sshd.exe"}}, nil),
			firewall:  factOf([]FirewallRule{{Name: "VXLAN", Allow: true, Protocol: "udp", Ports: "4789"}}, nil),
			runtime:   known[string]{err: fault.ErrNotExist},
			uuid:      aUUID,
			addresses: factOf([]string{"10.0.0.7"}, nil),
			targets: []reached{{
				target:    target{what: "the kubeconfig's server", address: "cp.example:6443"},
				addresses: factOf([]string{"10.0.0.1"}, nil),
				reach:     factOf(platform.Reach{Outcome: platform.Reached, Address: "10.0.0.1:6443", Source: "10.0.0.7"}, nil),
			}},
		},
		cluster: &clusterFacts{
			server:  "https://cp.example:6443",
			version: factOf("v1.36.3", nil),
			clock:   factOf(Clock{Ahead: -3 * time.Second, GiveOrTake: 500 * time.Millisecond}, nil),
			info: factOf(cluster.ClusterInfo{Exists: true, Server: "https://cp.example:6443",
				CACertHashes: []string{caHash}, Anonymous: true}, nil),
			kubeletConfig: factOf(cluster.KubeletConfig{Exists: true, Content: healthyKubeletConfig}, nil),
			cni: factOf(cluster.CNI{KubeProxyWindows: []string{"kube-proxy-windows"}, Calico: &cluster.Calico{
				Operator: true, BGP: "Disabled", WindowsDataplane: "HNS", ServiceCIDRs: []string{"10.96.0.0/12"},
				StrictAffinity:   true,
				ServicesEndpoint: true,
				Pools: []cluster.IPPool{{Name: "default", CIDR: "192.168.0.0/16", VXLAN: "Always",
					IPIP: "Never"}},
			}}, nil),
			namesake:     factOf(cluster.Node{Name: "win-1"}, nil),
			certificates: []presented{{target: target{what: "the kubeconfig's server", address: "cp.example:6443"}}},
		},
	}
}

const healthyKubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
systemReserved: {memory: 2Gi}
`

// kubeletRuns gives the machine a kubelet that swdt installed, with a log runner between
// the service and the listening process.
func kubeletRuns(f *facts) {
	f.own.Services = []string{"kubelet"}
	f.node.services.value["kubelet"] = Service{Name: "kubelet", State: "running", PID: 200,
		CommandLine: `C:\k\kube-log-runner.exe C:\k\kubelet.exe`}
	f.node.processes.value[200] = platform.Process{PID: 200, Name: "kube-log-runner.exe"}
	f.node.processes.value[204] = platform.Process{PID: 204, ParentPID: 200, Name: "kubelet.exe"}
	f.node.listeners.value = append(f.node.listeners.value,
		Listener{Address: "[::]:10250", Port: 10250, PID: 204, Process: "kubelet.exe"},
		Listener{Address: "127.0.0.1:10248", Port: 10248, PID: 204, Process: "kubelet.exe"})
}

func put(f *facts, s Service) { f.node.services.value[strings.ToLower(s.Name)] = s }

func flannel(f *facts, change func(*cluster.Flannel)) {
	c := &cluster.Flannel{Namespace: "kube-flannel", Backend: "vxlan", VNI: 4096, Port: 4789,
		WindowsDaemonSets: []string{"flannel-windows"}}
	change(c)
	f.cluster.cni.value.Calico, f.cluster.cni.value.Flannel = nil, c
}

func answer(f *facts, outcome platform.ReachOutcome) { f.node.targets[0].reach.value.Outcome = outcome }

// planted are changes of healthy facts, and the expected problems: "check severity: words
// of what or of the evidence", or none if the change is harmless.
type planted struct {
	change func(*facts)
	want   []string
}

func plantedOnMachine() map[string]planted {
	machine := func(change func(*platform.Facts)) func(*facts) { return func(f *facts) { change(&f.node.machine) } }
	named := func(name string) func(*facts) { return func(f *facts) { f.node.name.value = name } }
	return map[string]planted{
		"2019": {machine(func(m *platform.Facts) { m.Build, m.Product = "17763.1", "Windows Server 2019" }),
			nil},
		"2025": {func(f *facts) {
			f.node.machine.Build, f.node.machine.Product = "26100.33296", "Windows Server 2025"
			flannel(f, func(*cluster.Flannel) {})
		}, nil},
		"2025 with Calico": {machine(func(m *platform.Facts) { m.Build, m.Product = "26100.33296", "Windows Server 2025" }),
			[]string{"combinations warning: does not support Windows Server 2025"}},
		"2025 before the update for overlays": {func(f *facts) {
			f.node.machine.Build, f.node.machine.Product = "26100.1742", "Windows Server 2025"
			flannel(f, func(*cluster.Flannel) {})
		}, []string{"combinations warning: overlay networks (VXLAN) do not work"}},
		"2025 without a cluster": {func(f *facts) { f.node.machine.Build, f.cluster = "26100.1742", nil }, nil},
		"cimfs": {func(f *facts) {
			f.spec.Containerd.Config = "[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'cimfs'\n"
		}, []string{"combinations warning: Windows crashes with containerd's snapshotter cimfs"}},
		"2016": {machine(func(m *platform.Facts) { m.Build, m.Product = "14393.1", "Windows Server 2016" }),
			[]string{"windows-version error: build 14393.1"}},
		"Windows 11": {machine(func(m *platform.Facts) { m.Build, m.Product = "26100.1", "Windows 11 Pro" }),
			[]string{"windows-version warning: no Windows Server", "combinations warning: Windows 11 since 24H2"}},
		"arm64": {machine(func(m *platform.Facts) { m.Architecture = "arm64" }),
			[]string{"architecture error: amd64 only"}},
		"not elevated": {machine(func(m *platform.Facts) { m.Elevated = false }),
			[]string{"elevated error: may not change"}},
		"little disk": {machine(func(m *platform.Facts) { m.DiskFree = 14e9 }),
			[]string{"disk-space warning: 14.0 GB free"}},
		"no disk": {machine(func(m *platform.Facts) { m.DiskFree = 1e9 }),
			[]string{"disk-space error: too little"}},
		"little memory": {machine(func(m *platform.Facts) { m.Memory = 2e9 }),
			[]string{"memory warning: little memory"}},
		"no memory": {machine(func(m *platform.Facts) { m.Memory, m.MemoryFree = 5e8, 1e8 }),
			[]string{"memory error: too little"}},
		"unknown memory": {machine(func(m *platform.Facts) { m.Memory, m.MemoryFree = 0, 0 }), nil},
		"memory in use":  {machine(func(m *platform.Facts) { m.MemoryFree = 1e8 }), []string{"memory warning: in use"}},
		"pending reboot": {machine(func(m *platform.Facts) { m.PendingReboot = []string{"Windows Update"} }),
			[]string{"pending-reboot error: Windows Update"}},
		"name of a PC": {named("win_1"),
			[]string{`hostname error: the machine's name, in lower case, is not a valid node name: "win_1"`}},
		"a nodeIP of another machine": {func(f *facts) { f.spec.Join.NodeIP = "10.0.0.8" },
			[]string{"node-address warning: kubelet will refuse spec.kubernetes.join.nodeIP"}},
		"a nodeIP of its own": {func(f *facts) { f.spec.Join.NodeIP = "10.0.0.7" }, nil},
		"no address": {func(f *facts) {
			f.node.addresses.value = nil
			f.node.targets[0].reach.value.Source = "127.0.0.1"
		}, []string{"node-address warning: kubelet will find no address"}},
		"an address towards the API server alone": {func(f *facts) { f.node.addresses.value = nil }, nil},
		"an API server on the machine":            {func(f *facts) { f.node.targets[0].reach.value.Source = "127.0.0.1" }, nil},
		"long name":                               {named(strings.Repeat("a", 64)), []string{"hostname error: 64 characters"}},
		"longest name":                            {named(strings.Repeat("a", 63)), nil},
		"name with dots":                          {named("win.example.com"), nil},
		"a bad name of its own": {func(f *facts) {
			f.spec.Join.NodeName = "Win 1"
			named("Win 1")(f)
		}, []string{"hostname error: spec.kubernetes.join.nodeName"}},
		"no name to be had": {func(f *facts) { f.node.name = known[string]{err: errors.New("the agent is too busy")} },
			[]string{"hostname warning: too busy"}},
		"reboot allowed": {func(f *facts) {
			f.mayReboot, f.node.machine.PendingReboot = true, []string{"Windows Update"}
			f.node.features.value[containersFeature] = platform.FeatureDisabled
		}, []string{"pending-reboot info: Windows Update"}},
		"no containers": {func(f *facts) {
			f.node.features.value[containersFeature] = platform.FeatureDisabled
		}, []string{"containers-feature warning: disabled"}},
		"never containers": {func(f *facts) { delete(f.node.features.value, containersFeature) },
			[]string{"containers-feature error: does not have"}},
		"no Hyper-V, no need": {func(f *facts) { f.node.machine.Virtualization = false }, nil},
		"Hyper-V not enabled": {hyperVWanted, []string{"virtualization warning: disabled"}},
		"Hyper-V is impossible": {func(f *facts) { hyperVWanted(f); f.node.machine.Virtualization = false },
			[]string{"virtualization error: virtualization is off"}},
		"Hyper-V runs": {func(f *facts) {
			hyperVWanted(f)
			f.node.machine.Virtualization, f.node.features.value[hyperVFeature] = false, platform.FeatureEnabled
			put(f, Service{Name: "HvHost", State: "running"})
		}, nil},
		"no Hyper-V": {func(f *facts) { hyperVWanted(f); delete(f.node.features.value, hyperVFeature) },
			[]string{"virtualization error: does not have"}},
		"clock ahead": {func(f *facts) { f.node.clock.Ahead = 4 * time.Minute },
			[]string{"clock warning: 4m3s ahead of"}},
		"clock far behind": {func(f *facts) { f.node.clock.Ahead = -time.Hour },
			[]string{"clock error: 59m57s behind"}},
		"clock perhaps off": {func(f *facts) {
			f.node.clock = Clock{Ahead: 40 * time.Second, GiveOrTake: 15 * time.Second}
		}, nil},
	}
}

func hyperVWanted(f *facts) {
	f.spec.Containerd.Config = `[plugins."io.containerd.grpc.v1.cri".containerd]` + "\n" +
		`default_runtime_name = "runhcs-wcow-hypervisor"`
}

func plantedOnNode() map[string]planted {
	const docker = `"C:\Program Files\Docker\dockerd.exe" --run-service`
	return map[string]planted{
		"our own kubelet": {kubeletRuns, nil},
		"our own kubelet, owner unknown": {func(f *facts) {
			kubeletRuns(f)
			for i := range f.node.listeners.value {
				f.node.listeners.value[i].PID = 0
			}
		}, nil},
		"port in use": {func(f *facts) {
			f.node.listeners.value = append(f.node.listeners.value,
				Listener{Address: "0.0.0.0:10250", Port: 10250, PID: 412, Process: "nginx.exe",
					Image: `C:\nginx\nginx.exe`})
		}, []string{"ports error: 10250 is in use by nginx.exe (process 412)"}},
		"port in use, owner unknown": {func(f *facts) {
			f.node.listeners.value = append(f.node.listeners.value, Listener{Address: "127.0.0.1:10248", Port: 10248})
		}, []string{"ports error: 10248 is in use by another program"}},
		"another port for kubelet": {func(f *facts) {
			f.spec.Kubelet.ConfigPatch = map[string]any{"port": 22}
		}, []string{"ports error: 22 is in use by sshd.exe"}},
		"joined before": {func(f *facts) { f.node.files.value = leftovers() },
			[]string{"leftovers error: kubelet.conf"}},
		"joined by us": {func(f *facts) { f.node.files.value, f.own.Joined = leftovers(), true }, nil},
		"begun by us": {func(f *facts) {
			f.node.files.value, f.own.Files = leftovers()[:1], []string{`c:/etc/kubernetes/KUBELET.conf`}
		}, nil},
		"an old certificate": {func(f *facts) { f.node.files.value = []string{clientCertificate} },
			[]string{"leftovers warning: client certificate"}},
		"nssm's kubelet": {func(f *facts) {
			put(f, Service{Name: "kubelet", State: "stopped", CommandLine: `C:\k\nssm.exe`})
		}, []string{"kubelet-service error: nssm"}},
		"a kubelet elsewhere": {func(f *facts) {
			put(f, Service{Name: "kubelet", CommandLine: `D:\Kube Stuff\kubelet.exe --v=2`})
		}, []string{"kubelet-service error: outside of C:\\k"}},
		"a foreign kubelet": {func(f *facts) {
			put(f, Service{Name: "kubelet", CommandLine: `C:/k/kubelet.exe --v=2`})
		}, []string{"kubelet-service warning: has not made"}},
		"containerd where it belongs": {func(f *facts) {
			put(f, Service{Name: "containerd", State: "running",
				CommandLine: `C:\Program Files\containerd\bin\containerd.exe --run-service`})
			f.node.runtime = factOf("containerd v1.7.12", nil)
		}, nil},
		"containerd elsewhere": {func(f *facts) {
			put(f, Service{Name: "containerd", State: "running",
				CommandLine: `"D:\containerd\containerd.exe" --run-service`})
		}, []string{`container-runtime error: D:\containerd\containerd.exe`}},
		"containerd by hand": {func(f *facts) { f.node.runtime = factOf("containerd v1.7.12", nil) },
			[]string{"container-runtime error: containerd v1.7.12"}},
		"docker": {func(f *facts) {
			put(f, Service{Name: "docker", State: "running", CommandLine: docker})
		}, []string{"container-runtime warning: docker, which is running"}},
		"rke2": {func(f *facts) { put(f, Service{Name: "rke2", State: "running"}) },
			[]string{"container-runtime error: distribution of Kubernetes: service rke2"}},
		"a folder that users can change": {func(f *facts) {
			f.node.changeable.value = []Changeable{{Path: `C:\k`, By: []string{"BU"}}}
		}, []string{"program-folders warning: ordinary accounts can change"}},
		"no access lists": {func(f *facts) {
			f.node.machine.Simulated = "wine"
			f.node.changeable.value = []Changeable{{Path: `C:\k`, By: []string{"BU"}}}
		}, nil},
		"defender": {func(f *facts) { f.node.defender.value.Protects = true },
			[]string{"defender warning: scans every file"}},
		"defender excludes the process": {func(f *facts) {
			f.node.defender.value = Defender{Protects: true,
				Exclusions: []string{`C:\Program Files\containerd\bin\containerd.exe`}}
		}, nil},
		"defender excludes the folder": {func(f *facts) {
			f.node.defender.value = Defender{Protects: true, Exclusions: []string{`C:\ProgramData\containerd\`}}
		}, nil},
		"defender excludes something else": {func(f *facts) {
			f.node.defender.value = Defender{Protects: true, Exclusions: []string{`C:\k`, "ctr.exe"}}
		}, []string{"defender warning: not excluded"}},
		"unknown name": {func(f *facts) {
			f.node.targets[0].addresses = known[[]string]{err: fault.ErrNotExist}
		}, []string{"control-plane-name error: does not know the name cp.example"}},
		"refused": {func(f *facts) { answer(f, platform.Refused) },
			[]string{"control-plane-reachable error: refused"}},
		"timed out": {func(f *facts) { answer(f, platform.TimedOut) },
			[]string{"control-plane-reachable error: no answer"}},
		"no route": {func(f *facts) { answer(f, platform.NoRoute) },
			[]string{"control-plane-reachable error: no route"}},
		"failed in some way": {func(f *facts) { answer(f, platform.ReachFailed) },
			[]string{"control-plane-reachable error: cannot connect"}},
		"our own loopback": {func(f *facts) {
			f.node.targets[0].address = "127.0.0.1:6443"
			answer(f, platform.Refused)
		}, []string{"control-plane-reachable error: is the node itself"}},
		"not asked": {func(f *facts) { f.node.targets[0].reach.err = errors.New("the agent is too busy") },
			[]string{"control-plane-reachable warning: too busy"}},
	}
}

func plantedOnCluster() map[string]planted {
	version := func(v string) func(*facts) { return func(f *facts) { f.kubelet, f.kubeadm = v, v } }
	calico := func(change func(*cluster.Calico)) func(*facts) {
		return func(f *facts) { change(f.cluster.cni.value.Calico) }
	}
	refused := func(err error) func(*facts) { return func(f *facts) { f.cluster.version.err = err } }
	namesake := func(change func(*cluster.Node)) func(*facts) {
		return func(f *facts) {
			f.cluster.namesake.value = cluster.Node{Name: "win-1", Exists: true, Ready: true, OS: "windows",
				SystemUUID: strings.ToUpper(aUUID),
				Addresses:  []corev1.NodeAddress{{Address: "10.0.0.7"}}}
			change(&f.cluster.namesake.value)
		}
	}
	secrets := cluster.Permission{Verb: "create", Resource: "secrets", Namespace: "kube-system"}
	return map[string]planted{
		"unreachable": {refused(&cluster.UnreachableError{Err: context.DeadlineExceeded}),
			[]string{"api-server error: does not answer"}},
		"unauthorized": {refused(&cluster.UnauthorizedError{Err: errors.New("401")}),
			[]string{"api-server error: credentials"}},
		"no credential plugin": {func(f *facts) {
			f.cluster.version.err = &cluster.CredentialError{Plugin: "kubelogin", Missing: true, InstallHint: "install it"}
		}, []string{"api-server error: kubelogin is not installed"}},
		"forbidden": {refused(&cluster.ForbiddenError{Err: errors.New("403")}),
			[]string{"api-server error: next to nothing"}},
		"another name in the certificate": {func(f *facts) {
			f.cluster.certificates[0].others.value = []string{"localhost", "10.0.0.1"}
		}, []string{"api-server-certificate error: it is for localhost, 10.0.0.1"}},
		"a certificate out of reach": {func(f *facts) {
			f.cluster.certificates = append(f.cluster.certificates, presented{others: known[[]string]{err: errors.New("lost")}})
		}, nil},
		"no permission": {func(f *facts) { f.cluster.missing.value = []cluster.Permission{secrets} },
			[]string{"permissions error: may not create secrets -n kube-system"}},
		"no permission, no need": {func(f *facts) {
			f.cluster.missing.value, f.spec.Join.Token = []cluster.Permission{secrets}, "abcdef.0123456789abcdef"
			f.cluster.info.value.SignedFor = []string{"abcdef"}
		}, nil},
		"with a v":         {version("v1.36.0"), nil},
		"a minor behind":   {version("1.35.9"), []string{"version-skew warning: kubeadm is older"}},
		"three behind":     {version("1.33.1"), []string{"version-skew warning: kubeadm is older"}},
		"four behind":      {version("1.32.9"), []string{"version-skew error: 4 minor versions behind"}},
		"ahead":            {version("1.37.0"), []string{"version-skew error: newer than the API server"}},
		"another major":    {version("2.36.0"), []string{"version-skew error: major"}},
		"no version":       {version("newest"), []string{"version-skew error: no version"}},
		"whatever version": {version(""), nil},
		"two releases": {func(f *facts) { f.kubelet = "1.35.1" },
			[]string{"version-skew error: kubeadm 1.36.1, kubelet 1.35.1"}},
		"kubeadm alone": {func(f *facts) { f.kubelet = "" }, nil},
		"no kubeadm":    {func(f *facts) { f.kubeadm = "?" }, []string{"version-skew error: no version"}},
		"a strange server": {func(f *facts) { f.cluster.version.value = "main" },
			[]string{"version-skew warning: cannot be understood"}},
		"no cluster-info": {func(f *facts) { f.cluster.info.value = cluster.ClusterInfo{} },
			[]string{"cluster-info error: no ConfigMap cluster-info"}},
		"not anonymous": {func(f *facts) { f.cluster.info.value.Anonymous = false },
			[]string{"cluster-info error: without credentials"}},
		"no CA": {func(f *facts) { f.cluster.info.value.CACertHashes = nil },
			[]string{"cluster-info error: has no CA"}},
		"our CA": {func(f *facts) { f.spec.Join.DiscoveryTokenCACertHash = strings.ToUpper(caHash) }, nil},
		"another CA": {func(f *facts) { f.spec.Join.DiscoveryTokenCACertHash = "sha256:bbbb" },
			[]string{"cluster-info error: is not the hash of this cluster's CA"}},
		"an old token": {func(f *facts) { f.spec.Join.Token = "abcdef.0123456789abcdef" },
			[]string{"cluster-info error: token abcdef"}},
		"no kubelet-config": {func(f *facts) { f.cluster.kubeletConfig.value = cluster.KubeletConfig{} },
			[]string{"kubelet-config error: no ConfigMap"}},
		"no config in it": {func(f *facts) { f.cluster.kubeletConfig.value.Content = "kind: Other" },
			[]string{"kubelet-config error: apiVersion: is missing", "kubelet-config error: kind: is not KubeletConfiguration"}},
		"a text for a number in it": {func(f *facts) { f.cluster.kubeletConfig.value.Content += "maxPods: \"40\"\nmaxPod: 3\n" },
			[]string{"kubelet-config error: line 4: maxPods", "kubelet-config warning: line 5: maxPod"}},
		"no YAML in it": {func(f *facts) { f.cluster.kubeletConfig.value.Content = "\t{" },
			[]string{"kubelet-config error: yaml"}},
		"nothing reserved": {unreserved(nil), []string{"memory-reservation info: no memory is reserved"}},
		"the CPU reserved": {unreserved(func(f *facts) {
			f.spec.Kubelet.ExtraArgs = map[string]string{"system-reserved": "cpu=500m"}
			f.spec.Kubelet.ConfigPatch = map[string]any{"kubeReserved": map[string]any{"cpu": "1"}}
		}), []string{"memory-reservation info: neither systemReserved nor kubeReserved"}},
		"reserved by a flag": {unreserved(func(f *facts) {
			f.spec.Kubelet.ExtraArgs = map[string]string{"kube-reserved": "cpu=500m,memory=1Gi"}
		}), nil},
		"reserved by a patch": {unreserved(func(f *facts) {
			f.spec.Kubelet.ConfigPatch = map[string]any{"systemReserved": map[string]any{"memory": "2Gi"}}
		}), nil},
		"a Ready namesake": {namesake(func(n *cluster.Node) { n.SystemUUID = "" }),
			[]string{"node-name error: which is Ready"}},
		"a dead namesake": {namesake(func(n *cluster.Node) { n.SystemUUID, n.Ready = "", false }),
			[]string{"node-name warning: which is not Ready"}},
		"ourselves of before, still Ready": {namesake(func(*cluster.Node) {}),
			[]string{"node-name info: this machine's earlier node win-1, which is Ready"}},
		"ourselves of before": {namesake(func(n *cluster.Node) { n.Ready = false }),
			[]string{"node-name info: earlier node win-1, which is not Ready"}},
		"ourselves, with a foreign kubelet": {func(f *facts) {
			namesake(func(*cluster.Node) {})(f)
			put(f, Service{Name: "kubelet", State: "running", CommandLine: `C:/k/kubelet.exe --v=2`})
		}, []string{"node-name error: which is Ready", "kubelet-service warning: has not made"}},
		"ourselves, services unknown": {func(f *facts) {
			namesake(func(*cluster.Node) {})(f)
			f.node.services.err = errors.New("the agent is too busy")
		}, []string{"node-name error: which is Ready", "kubelet-service warning: too busy"}},
		"a node of this cluster": {func(f *facts) {
			f.own = Own{Joined: true, Authorities: []string{"sha256:bbbb", strings.ToUpper(caHash)}}
		}, nil},
		"a node of another cluster": {func(f *facts) {
			f.own = Own{Joined: true, Authorities: []string{"sha256:bbbb"}}
		}, []string{"membership error: a node of another cluster"}},
		"a node of whatever cluster": {func(f *facts) {
			f.own = Own{Joined: true, Authorities: []string{"sha256:bbbb"}}
			f.cluster.info.err = errors.New("500")
		}, []string{"cluster-info warning: 500"}},
		"a Linux namesake": {namesake(func(n *cluster.Node) { n.Ready, n.OS = false, "linux" }),
			[]string{"node-name error: another machine"}},
		"another namesake": {namesake(func(n *cluster.Node) { n.SystemUUID = "4c4c4544-ffff" }),
			[]string{"node-name error: another machine"}},
		"that is ourselves": {func(f *facts) { namesake(func(*cluster.Node) {})(f); f.own.Joined = true }, nil},
		"our name, another machine": {func(f *facts) {
			namesake(func(n *cluster.Node) { n.SystemUUID = "4c4c4544-ffff" })(f)
			f.own.Joined = true
		}, []string{"node-name error: another machine"}},
		"no network": {func(f *facts) { f.cluster.cni.value.Calico = nil },
			[]string{"pod-network warning: no pod network"}},
		"no dataplane": {calico(func(c *cluster.Calico) { c.WindowsDataplane = "" }),
			[]string{"calico warning: windowsDataplane is not set"}},
		"BGP": {calico(func(c *cluster.Calico) { c.BGP = "Enabled" }),
			[]string{"calico warning: bgp is Enabled"}},
		"no CIDRs": {calico(func(c *cluster.Calico) { c.ServiceCIDRs = nil }),
			[]string{"calico warning: serviceCIDRs is not set"}},
		"no endpoint": {calico(func(c *cluster.Calico) { c.ServicesEndpoint = false }),
			[]string{"calico warning: kubernetes-services-endpoint"}},
		"no affinity": {calico(func(c *cluster.Calico) { c.StrictAffinity = false }),
			[]string{"calico warning: strictAffinity is off"}},
		"IP in IP": {calico(func(c *cluster.Calico) { c.Pools[0].IPIP = "Always" }),
			[]string{"calico warning: ipipMode Always"}},
		"by manifest": {calico(func(c *cluster.Calico) { *c = cluster.Calico{StrictAffinity: true} }),
			[]string{"calico warning: no DaemonSet for Windows"}},
		"flannel": {func(f *facts) { flannel(f, func(*cluster.Flannel) {}) }, nil},
		"flannel by host-gw": {func(f *facts) {
			flannel(f, func(c *cluster.Flannel) { c.Backend, c.VNI, c.Port = "host-gw", 0, 0 })
		}, nil},
		"flannel for Linux": {func(f *facts) { flannel(f, func(c *cluster.Flannel) { c.VNI, c.Port = 1, 8472 }) },
			[]string{"flannel warning: VNI is 1", "flannel warning: Port is 8472"}},
		"flannel by wg": {func(f *facts) { flannel(f, func(c *cluster.Flannel) { c.Backend = "wireguard" }) },
			[]string{"flannel warning: Backend.Type is wireguard"}},
		"flannel not for us": {func(f *facts) { flannel(f, func(c *cluster.Flannel) { c.WindowsDaemonSets = nil }) },
			[]string{"flannel warning: no DaemonSet"}},
		"kube-proxy as a service": {func(f *facts) {
			f.cluster.cni.value.KubeProxyWindows, f.cluster.cni.value.KubeProxyForm = nil, cluster.KubeProxyService
		}, nil},
		"no kube-proxy": {func(f *facts) { f.cluster.cni.value.KubeProxyWindows = nil },
			[]string{"kube-proxy warning: services are not reached"}},
		"an old kube-proxy": {func(f *facts) {
			f.cluster.cni.value.KubeProxyImages = []string{"sigwindowstools/kube-proxy:v1.32.9-calico-hostprocess"}
		}, []string{"kube-proxy warning: kube-proxy:v1.32.9-calico-hostprocess, API server 1.36.3"}},
		"a kube-proxy of tomorrow": {func(f *facts) {
			f.cluster.cni.value.KubeProxyImages = []string{"mirror.example:5000/kube-proxy:v1.37.0@sha256:0a"}
		}, []string{"kube-proxy warning: another version"}},
		"a kube-proxy without a command": {func(f *facts) {
			f.cluster.cni.value.KubeProxies = []cluster.KubeProxy{{Namespace: "kube-system", Name: "kube-proxy-windows",
				Image: "mirror.example/kube-proxy:v1.36.3-calico-hostprocess", Ours: true}}
		}, []string{"kube-proxy warning: it has no command"}},
		"a kube-proxy with a mode of Linux": {func(f *facts) {
			f.cluster.cni.value.KubeProxies = []cluster.KubeProxy{{Namespace: "a", Name: "b", Starts: true, Mode: "iptables"}}
		}, []string{"kube-proxy warning: it reads a mode"}},
		"a kube-proxy that runs": {func(f *facts) {
			f.cluster.cni.value.KubeProxies = []cluster.KubeProxy{{Namespace: "a", Name: "b", Starts: true, Gates: []string{"WinDSR=true"}}}
		}, nil},
		"a kube-proxy without a version": {func(f *facts) {
			f.cluster.cni.value.KubeProxyImages = []string{"mirror.example:5000/kube-proxy"}
		}, nil},
		"Antrea": {func(f *facts) {
			f.cluster.cni.value = cluster.CNI{Antrea: &cluster.Antrea{WindowsDaemonSets: []string{"w"}}}
		}, nil},
		"Antrea for Linux": {func(f *facts) { f.cluster.cni.value = cluster.CNI{Antrea: &cluster.Antrea{}} },
			[]string{"antrea warning: no DaemonSet"}},
		"a fact that is lost": {func(f *facts) { f.cluster.cni.err = errors.New("500") },
			[]string{"pod-network warning: 500"}},
	}
}

// Each check reports nothing for healthy facts, and the problem for planted changes.
func TestChecks(t *testing.T) {
	switch r := healthy().report(nil); {
	case len(r.Problems) > 0:
		t.Fatalf("len(r.Problems) = %v, want 0: %+v", len(r.Problems), r.Problems)
	case len(r.Skipped) > 0:
		t.Fatalf("len(r.Skipped) = %v, want 0: %+v", len(r.Skipped), r.Skipped)
	case len(r.Checks) != len(Checks()):
		t.Fatalf("len(r.Checks) is wrong; healthy: %+v", r)
	}
	fired := map[string]bool{}
	for _, all := range []map[string]planted{plantedOnMachine(), plantedOnNode(), plantedOnCluster(), plantedOnTunnels()} {
		for name, p := range all {
			t.Run(name, func(t *testing.T) {
				f := healthy()
				p.change(f)
				problems := f.report(nil).Problems
				if len(problems) != len(p.want) {
					t.Fatalf("found %+v, want %q", problems, p.want)
				}
				for _, want := range p.want {
					i := slices.IndexFunc(problems, func(found finding.Problem) bool { return problemIs(found, want) })
					if i < 0 {
						t.Errorf("found %+v, want %q", problems, want)
						continue
					}
					fired[problems[i].Check] = true
					if problems[i].Remedy == "" && problems[i].Severity == finding.Error {
						t.Errorf("no remedy: %+v", problems[i])
					}
				}
			})
		}
	}
	for _, c := range Checks() {
		if !fired[c.ID] {
			t.Errorf("nothing lets %s fire", c.ID)
		}
	}
}

func problemIs(p finding.Problem, want string) bool {
	head, words, _ := strings.Cut(want, ": ")
	return head == p.Check+" "+string(p.Severity) && strings.Contains(p.What+" "+p.Evidence, words)
}

// A check whose facts the machine cannot supply is skipped, without a problem. If access to
// the facts is denied, that is a problem.

// unreserved removes the reservation of memory from the cluster's configuration for kubelet, and makes a change.
func unreserved(change func(*facts)) func(*facts) {
	return func(f *facts) {
		f.cluster.kubeletConfig.value.Content = strings.Replace(healthyKubeletConfig, "systemReserved: {memory: 2Gi}\n", "", 1)
		if change != nil {
			change(f)
		}
	}
}
