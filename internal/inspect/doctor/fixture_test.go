package doctor_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/inspect/owners"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/join/preflight"
	"github.com/swdt-dev/swdt/internal/platform"
)

const (
	uuid   = "4c4c4544-0042-3510-8058-b4c04f4d5931"
	caHash = "sha256:aaaaaaaaaaaaaaaaaaaaaaaa"
	pause  = "registry.k8s.io/pause:3.10"
	conf   = `C:\etc\cni\net.d\10-calico.conf`
)

var taken = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// healthy returns the facts of a node without faults; all of them are known.
func healthy() *doctor.Facts {
	f := &doctor.Facts{Form: doctor.Form, Node: "win-1", Taken: taken}
	addMachine(f)
	addServices(f)
	addKubelet(f)
	addRuntime(f)
	addNetworks(f)
	addCluster(f)
	return f
}

func addMachine(f *doctor.Facts) {
	f.Machine = doctor.Known(doctor.Machine{
		Hostname: "WIN-1", Product: "Windows Server 2022 Datacenter", Build: "20348.2849", Architecture: "amd64",
		UptimeSeconds: 86400,
		CPUs:          4, Memory: 16e9, MemoryFree: 9e9, SystemDrive: "C:", DiskFree: 60e9, Elevated: true, Time: taken,
		SystemUUID: uuid,
	})
	f.Containers = doctor.Known(platform.FeatureEnabled)
	f.Switches = doctor.Known([]doctor.Switch{})
	f.Firewall = doctor.Known([]doctor.FirewallRule{
		{Name: "kubelet", Allow: true, Protocol: "tcp", Ports: "10250"},
		{Name: "vxlan", Allow: true, Protocol: "udp", Ports: "4789"},
		{Name: "@{Microsoft.Something}", Allow: true},
		{Name: "a program's", Allow: false, Program: `C:\bad.exe`},
	})
	f.Defender = doctor.Known(preflight.Defender{Protects: true,
		Exclusions: []string{`C:\Program Files\containerd\bin\containerd.exe`}})
	f.PageFiles = doctor.Known([]string{`?:\pagefile.sys`})
	f.Updates = doctor.Known(doctor.Updates{})
	proxy := doctor.Proxy{HTTP: "http://proxy.example:3128", HTTPS: "http://proxy.example:3128",
		No: "cp.example,.svc,.cluster.local,10.0.0.0/8"}
	running := map[string]doctor.Proxy{"containerd": proxy, "kubelet": proxy}
	proxy.Running = running
	f.Proxy = doctor.Known(proxy)
	f.Roots = doctor.Known([]join.RootCertificate{{Name: "CN=Company", NotAfter: taken.AddDate(1, 0, 0), Trusted: true}})
	f.Ports = doctor.Known(doctor.Ports{Excluded: []doctor.PortRange{
		{First: 5357, Last: 5357}, {First: 10250, Last: 10250, Administered: true}, {First: 49671, Last: 49770},
	}, DynamicFirst: 34000, DynamicCount: 31536})
	f.Interfaces = doctor.Known([]doctor.Interface{{Name: "Ethernet", MTU: 1500},
		{Name: "vEthernet (Ethernet)", MTU: 1500}})
	f.Events = doctor.Known([]doctor.Event{})
	f.Logs = doctor.Known([]doctor.LogFile{{Path: `C:\var\log\kubelet\kubelet.log`, Bytes: 20e6}})
	f.Swaps = doctor.Known([]doctor.Swap{{ID: "1", Holder: "me", Begun: taken.Add(-time.Minute), State: "swapping",
		Guarded: true}})
}

func addServices(f *doctor.Facts) {
	three := 3
	f.Services = doctor.Known(map[string]preflight.Service{
		"containerd": {Name: "containerd", State: "running", PID: 100, StartType: "auto", Restarts: &three,
			RestartsRepeat: true, CommandLine: `"C:\Program Files\containerd\bin\containerd.exe" --run-service ` +
				`--config "C:\Program Files\containerd\config.toml"`},
		"kubelet": {Name: "kubelet", State: "running", PID: 200, StartType: "auto", Restarts: &three,
			RestartsRepeat: true, Dependencies: []string{"containerd"},
			CommandLine: `C:\k\kube-log-runner.exe --log-file=C:\var\log\kubelet\kubelet.log ` +
				`C:\k\kubelet.exe --windows-service`},
		"kube-proxy": {Name: "kube-proxy", State: "running", PID: 300, StartType: "auto"},
		"csi-proxy":  {Name: "csi-proxy", State: "running", PID: 310},
		"hns":        {Name: "hns", State: "running", PID: 320},
		"vmcompute":  {Name: "vmcompute", State: "running", PID: 330},
		"w32time":    {Name: "W32Time", State: "running", PID: 340, StartType: "auto"},
	})
	f.Listeners = doctor.Known([]preflight.Listener{
		{Address: "[::]:10250", Port: 10250, PID: 204, Process: "kubelet.exe", Image: `C:\k\kubelet.exe`},
		{Address: "0.0.0.0:22", Port: 22, PID: 400, Process: "sshd.exe"},
	})
	f.Changeable = doctor.Known([]preflight.Changeable{})
	f.Placements = doctor.Known([]doctor.Placement{{Name: "kubelet", Service: "kubelet", Destination: `C:\k\kubelet.exe`}})
	f.Programs = doctor.Known(map[string]doctor.Program{
		"kubelet":    {Path: `C:\k\kubelet.exe`, Exists: true, Version: "v1.35.2"},
		"containerd": {Path: `C:\Program Files\containerd\bin\containerd.exe`, Exists: true, Version: "v2.2.0"},
	})
}

func addKubelet(f *doctor.Facts) {
	f.KubeletFlags = doctor.Known(map[string]string{
		"config": `C:\var\lib\kubelet\config.yaml`, "cgroups-per-qos": "false", "enforce-node-allocatable": "",
		"container-runtime-endpoint": "npipe:////./pipe/containerd-containerd", "windows-service": "",
		"node-labels": "b=2,a=1", "fail-swap-on": "",
	})
	f.KubeadmFlags = doctor.Known(doctor.KubeadmFlags{Path: `C:\var\lib\kubelet\kubeadm-flags.env`,
		Flags: map[string]string{"container-runtime-endpoint": `\\.\pipe\containerd-containerd`, "node-labels": "a=1,b=2",
			"fail-swap-on": "true", "network-plugin": "cni"}}) // the last of which this kubelet does not have
	f.Kubelet = doctor.Known(doctor.KubeletConfig{Path: `C:\var\lib\kubelet\config.yaml`})
	f.Health = doctor.Known(doctor.Health{URL: "http://127.0.0.1:10248/healthz", Status: 200})
	f.Kubeconfig = doctor.Known(doctor.Kubeconfig{Exists: true, Server: "https://cp.example:6443",
		CAHashes: []string{caHash}})
	f.Certificates = doctor.Known([]doctor.Certificate{
		{Path: `C:\var\lib\kubelet\pki\kubelet-client-current.pem`, Use: "client",
			Subject: "CN=system:node:win-1,O=system:nodes", NotAfter: taken.AddDate(0, 8, 0)},
		{Path: `C:\var\lib\kubelet\pki\kubelet.crt`, Use: "serving", Subject: "CN=win-1@1",
			NotAfter: taken.AddDate(0, 8, 0)},
		{Path: `C:\etc\kubernetes\pki\ca.crt`, Use: "authority", Subject: "CN=kubernetes",
			NotAfter: taken.AddDate(9, 0, 0)},
	})
	f.Reached = doctor.Known([]preflight.Reached{{What: "the server in kubelet.conf", Address: "cp.example:6443",
		Outcome: platform.Reached, Connected: "10.0.0.1:6443", Source: "10.0.0.7"}})
}

func addRuntime(f *doctor.Facts) {
	f.Containerd = doctor.Known(doctor.ContainerdConfig{
		Path: `C:\Program Files\containerd\config.toml`, Exists: true, FileVersion: 3, Version: 3,
		Pipe:         `\\.\pipe\containerd-containerd`,
		SandboxImage: pause, Handlers: []string{"runhcs-wcow-process", "runhcs-wcow-hypervisor"},
		ConfFolder: `C:\etc\cni\net.d`,
	})
	f.Runtime = doctor.Known(doctor.Runtime{
		Pipe: `\\.\pipe\containerd-containerd`, Answers: true, Name: "containerd", Version: "v2.2.0",
		Conditions: []doctor.Condition{{Type: "RuntimeReady", Status: true}, {Type: "NetworkReady", Status: true}},
	})
	f.Sandboxes = doctor.Known([]doctor.Sandbox{{ID: "s1", Namespace: "default", Name: "web", Ready: true},
		{ID: "s2", Namespace: "default", Name: "old"}})
	f.InUse = doctor.Known([]doctor.Container{
		{Sandbox: "s1", Name: "web", Image: "sha256:web", State: "running"},
		{Sandbox: "s1", Name: "host-process", Image: "sha256:old", State: "running"},
	})
	f.Images = doctor.Known([]doctor.Image{
		{ID: "sha256:pause", Tags: []string{pause}, Bytes: 1e8, OS: "windows", OSVersion: "10.0.20348.1"},
		{ID: "sha256:web", Tags: []string{"example.com/web:1"}, Bytes: 1e8, OS: "windows",
			OSVersion: "10.0.20348.2849"},
		{ID: "sha256:old", Tags: []string{"example.com/old:1"}, Bytes: 1e8, OS: "windows", OSVersion: "10.0.17763.1"},
		{ID: "sha256:new", Tags: []string{"example.com/new:1"}, Bytes: 1e8, OS: "windows", OSVersion: "10.0.26100.1"},
	})
	f.ImageStore = doctor.Known(uint64(12e9))
	f.CNI = doctor.Known(doctor.CNI{
		Folder: `C:\etc\cni\net.d`, Folders: []string{`C:\opt\cni\bin`},
		Binaries: []string{"calico.exe", "calico-ipam.exe"},
		Files:    []doctor.CNIFile{{Path: conf, Name: "Calico", Plugins: []string{"calico", "calico-ipam"}}},
	})
}

func addNetworks(f *doctor.Facts) {
	f.Programmed = doctor.Known([]kubeproxy.Finding{})
	f.HNS = doctor.Known(hns.State{
		Networks: []hns.Network{{ID: "N0", Name: "nat", Type: "NAT"}, {ID: "N1", Name: "Calico", Type: "Overlay"}},
		Endpoints: []hns.Endpoint{
			{ID: "E1", Name: "Calico_ep", Network: "N1", Addresses: []hns.Address{{IP: "192.168.15.130"}}},
			{ID: "E2", Name: "s1_Calico", Network: "N1", Namespace: "NS1",
				Addresses: []hns.Address{{IP: "192.168.15.131"}}},
			{ID: "E3", Name: "Ethernet", Network: "N1", Remote: true, Addresses: []hns.Address{{IP: "192.168.20.7"}}},
		},
		LoadBalancers: []hns.LoadBalancer{{
			ID: "L1", VIPs: []string{"10.96.0.10"}, SourceVIP: "192.168.15.130", Endpoints: []string{"E2", "E3"},
			Ports: []hns.PortMapping{{Protocol: "udp", External: 53, Internal: 53}},
		}},
		Namespaces: []hns.Namespace{{ID: "NS1", Number: 2, Type: "Guest", Endpoints: []string{"E2"}}},
	})
	f.PodNetworks = doctor.Known([]hns.Pod{
		{Namespace: "default", Name: "web", Sandbox: "s1", NetworkNamespace: "NS1", IPs: []string{"192.168.15.131"}},
		{Namespace: "kube-system", Name: "host-process", Sandbox: "s3"},
	})
	f.Orphans = doctor.Known([]owners.Orphan{})
}

func addCluster(f *doctor.Facts) {
	f.Server = doctor.Known(doctor.Server{URL: "https://cp.example:6443", Version: "v1.36.3",
		CAHashes: []string{caHash}})
	f.Clocks = doctor.Known(doctor.Clocks{NodeAhead: 1, NodeWithin: 0.1, ServerAhead: -1, ServerWithin: 0.5})
	f.Object = doctor.Known(cluster.Node{
		Name: "win-1", Exists: true, Ready: true, KubeletVersion: "v1.35.2", KernelVersion: "10.0.20348.2849",
		SystemUUID: uuid,
		Addresses:  []corev1.NodeAddress{{Type: "InternalIP", Address: "10.0.0.7"}},
		Conditions: []cluster.Condition{{Type: "Ready", Status: "True"}, {Type: "DiskPressure", Status: "False"}},
	})
	f.Others = doctor.Known([]doctor.OtherNode{{Name: "cp", SystemUUID: "another", Addresses: []string{"10.0.0.1"},
		Ready: true}})
	f.Pods = doctor.Known([]doctor.Pod{
		{Pod: cluster.Pod{Namespace: "default", Name: "web"}, Phase: "Running", OS: "windows",
			Created: taken.Add(-time.Hour), RuntimeClass: "process"},
		{Pod: cluster.Pod{Namespace: "default", Name: "young"}, Phase: "Pending", Created: taken.Add(-time.Minute),
			Waiting: []string{"c: ContainerCreating"}},
	})
	f.RuntimeClasses = doctor.Known([]doctor.RuntimeClass{
		{Name: "process", Handler: "runhcs-wcow-process", Windows: true}, {Name: "gvisor", Handler: "runsc"},
	})
	f.Network = doctor.Known(cluster.CNI{
		KubeProxyWindows: []string{"kube-system/kube-proxy-windows"},
		Calico: &cluster.Calico{
			Operator: true, BGP: "Disabled", WindowsDataplane: "HNS", ServiceCIDRs: []string{"10.96.0.0/12"},
			StrictAffinity:   true,
			ServicesEndpoint: true,
			Pools: []cluster.IPPool{{Name: "default", CIDR: "192.168.0.0/16", VXLAN: "Always",
				IPIP: "Never"}},
		},
	})
}
