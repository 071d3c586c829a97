package doctor_test

import (
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/inspect/doctor"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/inspect/owners"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func onPod(i int, change func(*doctor.Pod)) func(*doctor.Facts) {
	return func(f *doctor.Facts) { change(&(*f.Pods.Value)[i]) }
}

func runtimeFaults() []fault {
	program := func(name, version string) func(*doctor.Facts) {
		return func(f *doctor.Facts) { (*f.Programs.Value)[name] = doctor.Program{Version: version} }
	}
	condition := func(i int) func(*doctor.Facts) {
		return func(f *doctor.Facts) {
			c := &f.Runtime.Value.Conditions[i]
			c.Status, c.Reason, c.Message = false, "NotReadyYet", "something is missing"
		}
	}
	return []fault{
		{"containerd-config", finding.Error,
			func(f *doctor.Facts) { f.Containerd.Value.Refused = "expected version equal to or less than 2" },
			"less than 2"},
		{"containerd-config-version", finding.Warning, func(f *doctor.Facts) { f.Containerd.Value.FileVersion = 1 },
			"has version 1"},
		{"containerd-config-version", finding.Warning, func(f *doctor.Facts) { f.Containerd.Value.FileVersion = 4 },
			"newer than containerd"},
		{"containerd-config-version", finding.Info, func(f *doctor.Facts) { f.Containerd.Value.FileVersion = 2 },
			"which has version 3"},
		{"containerd-version", finding.Error, program("containerd", "1.5.9"), "CRI v1"},
		{"containerd-version", finding.Info, func(f *doctor.Facts) {
			program("containerd", "v1.7.12")(f)
			program("kubelet", "v1.36.3")(f)
		}, "supports containerd 1"},
		{"runtime-answers", finding.Error, func(f *doctor.Facts) {
			f.Runtime.Value.Answers, f.Runtime.Value.Error = false, "no process serves the pipe"
		}, "no process serves"},
		{"runtime-ready", finding.Error, condition(0), "NotReadyYet: something is missing"},
		{"network-ready", finding.Error, condition(1), "no pod network"},
		{"runtime-handlers", finding.Warning,
			func(f *doctor.Facts) { f.Containerd.Value.Handlers = []string{"runhcs-wcow-hypervisor"} },
			"no runtime runhcs-wcow-process"},
		{"stopped-sandboxes", finding.Info, func(f *doctor.Facts) {
			add(f.Sandboxes.Value, make([]doctor.Sandbox, 150)...)
		}, "151 of 152"},
		{"pause-image", finding.Error, func(f *doctor.Facts) { (*f.Images.Value)[0].OSVersion = "10.0.26100.1" },
			"too new"},
		{"pause-image", finding.Error, func(f *doctor.Facts) { (*f.Images.Value)[0].OS = "linux" }, "not windows"},
		{"image-mismatch", finding.Error, func(f *doctor.Facts) {
			add(f.InUse.Value, doctor.Container{Sandbox: "s2", Name: "app", Image: "sha256:new", State: "created"})
		}, "example.com/new:1 is for windows 10.0.26100.1"},
		{"image-store", finding.Warning,
			func(f *doctor.Facts) { f.Machine.Value.DiskFree, *f.ImageStore.Value = 20e9, 100e9 },
			"100.0 GB in images"},
		{"cni-config", finding.Error, func(f *doctor.Facts) { f.CNI.Value.Files = nil },
			"no pod network is configured"},
		{"cni-config", finding.Error,
			func(f *doctor.Facts) { f.CNI.Value.Files[0].Problem = "unexpected end of JSON input" }, "cannot be read"},
		{"cni-several", finding.Warning,
			func(f *doctor.Facts) { add(&f.CNI.Value.Files, doctor.CNIFile{Path: `C:\etc\cni\net.d\20-old.conf`}) },
			"20-old.conf"},
		{"cni-binaries", finding.Error, func(f *doctor.Facts) { f.CNI.Value.Binaries = []string{"calico.exe"} },
			"no calico-ipam.exe"},
	}
}

func hnsFaults() []fault {
	state := func(change func(*hns.State)) func(*doctor.Facts) {
		return func(f *doctor.Facts) { change(f.HNS.Value) }
	}
	return []fault{
		{"hns-network", finding.Error, state(func(s *hns.State) { s.Networks = s.Networks[:1] }), "there is only nat"},
		{"hns-orphan-endpoints", finding.Warning, state(func(s *hns.State) {
			s.Namespaces = append(s.Namespaces, hns.Namespace{ID: "NS9", Type: "Guest"})
			s.Endpoints = append(s.Endpoints, hns.Endpoint{Name: "gone", Namespace: "NS9",
				Addresses: []hns.Address{{IP: "192.168.15.140"}}})
		}), "gone 192.168.15.140"},
		{"hns-orphan-endpoints", finding.Warning, state(func(s *hns.State) {
			s.Endpoints = append(s.Endpoints, hns.Endpoint{Name: strings.Repeat("a1", 32) + "_Calico"})
		}), "1 endpoint of pods"},
		{"hns-missing-endpoints", finding.Error, state(func(s *hns.State) { s.Endpoints = s.Endpoints[:1] }),
			"pod default/web has no endpoint"},
		{"hns-loadbalancers", finding.Warning, state(func(s *hns.State) { s.LoadBalancers[0].Endpoints = nil }),
			"10.96.0.10:53/udp"},
		{"hns-loadbalancers", finding.Error, state(func(s *hns.State) { s.LoadBalancers[0].Endpoints[0] = "E9" }),
			"endpoints that do not exist"},
		{"hns-source-vip", finding.Error, state(func(s *hns.State) { s.LoadBalancers[0].SourceVIP = "" }),
			"no source VIP"},
		{"hns-source-vip", finding.Error, state(func(s *hns.State) { s.LoadBalancers[0].SourceVIP = "192.168.99.1" }),
			"no endpoint of this node has"},
		{"hns-duplicate-address", finding.Error,
			state(func(s *hns.State) { s.Endpoints[0].Addresses[0].IP = "192.168.15.131" }), "Calico_ep, s1_Calico"},
		{"services-programmed", finding.Error, func(f *doctor.Facts) {
			add(f.Programmed.Value,
				kubeproxy.Finding{Finding: finding.Finding{Severity: finding.Warning}, Kind: kubeproxy.StaleRemote, At: "10.244.2.99"},
				kubeproxy.Finding{Finding: finding.Finding{Severity: finding.Error}, Kind: kubeproxy.Missing, Service: "shop/web", At: "10.96.0.20:80/tcp"})
		}, "shop/web (10.96.0.20:80/tcp)"},
		{"orphan-shims", finding.Warning, func(f *doctor.Facts) {
			add(f.Orphans.Value,
				owners.Orphan{Process: owners.Process{PID: 4711, Name: "containerd-shim-runhcs-v1.exe"},
					Why: "the runtime does not know its pod"})
		}, "process 4711"},
	}
}

func clusterFaults() []fault {
	object := func(change func(*cluster.Node)) func(*doctor.Facts) {
		return func(f *doctor.Facts) { change(f.Object.Value) }
	}
	network := func(change func(*cluster.CNI)) func(*doctor.Facts) {
		return func(f *doctor.Facts) { change(f.Network.Value) }
	}
	return []fault{
		{"api-server", finding.Error, func(f *doctor.Facts) { f.Server.Value.Error = "connection refused" },
			"connection refused"},
		{"api-server", finding.Error, func(f *doctor.Facts) {
			f.Server.Value.Error, f.Server.Value.Unasked = "the kubeconfig's credential plugin kubelogin is not installed", true
		}, "credential plugin"},
		{"node-registered", finding.Error, object(func(n *cluster.Node) { *n = cluster.Node{Name: "win-1"} }),
			"no Node win-1"},
		{"node-ready", finding.Error, object(func(n *cluster.Node) {
			n.Ready, n.LeaseRenewed = false, taken
			n.Conditions[0] = cluster.Condition{Type: "Ready", Status: "Unknown", Reason: "NodeStatusUnknown"}
		}), "NodeStatusUnknown"},
		{"node-address", finding.Error, object(func(n *cluster.Node) { n.Addresses = nil }), "has no address"},
		{"node-address", finding.Warning, func(f *doctor.Facts) { (*f.Reached.Value)[0].Source = "10.0.2.15" },
			"has the address 10.0.0.7"},
		{"node-pressure", finding.Error, object(func(n *cluster.Node) { n.Conditions[1].Status = "True" }),
			"DiskPressure"},
		{"node-cordoned", finding.Info, object(func(n *cluster.Node) { n.Cordoned = true }), "kubectl uncordon win-1"},
		{"node-versions", finding.Warning, object(func(n *cluster.Node) { n.KubeletVersion = "v1.34.0" }), "v1.34.0"},
		{"node-versions", finding.Warning, object(func(n *cluster.Node) { n.KernelVersion = "10.0.17763.1" }),
			"another build"},
		{"version-skew", finding.Error, func(f *doctor.Facts) { f.Server.Value.Version = "v1.34.1" },
			"newer than the API server"},
		{"pods-waiting", finding.Warning, onPod(1, func(p *doctor.Pod) { p.Created = taken.Add(-time.Hour) }),
			"ContainerCreating"},
		{"pods-restarting", finding.Warning, onPod(0, func(p *doctor.Pod) {
			p.Waiting, p.Restarts = []string{"c: CrashLoopBackOff"}, 7
		}), "7 times"},
		{"pods-terminating", finding.Warning, onPod(0, func(p *doctor.Pod) { p.Deleted = taken.Add(-time.Hour) }),
			"1h0m0s ago"},
		{"pod-os", finding.Warning, onPod(0, func(p *doctor.Pod) { p.OS = "linux" }), "linux"},
		{"calico", finding.Warning, network(func(c *cluster.CNI) { c.Calico.StrictAffinity = false }),
			"strictAffinity"},
		{"flannel", finding.Warning, network(func(c *cluster.CNI) {
			c.Flannel = &cluster.Flannel{Backend: "vxlan", VNI: 1, Port: 4789, WindowsDaemonSets: []string{"flannel"}}
		}), "VNI is 1"},
		{"antrea", finding.Warning, network(func(c *cluster.CNI) { c.Antrea = &cluster.Antrea{} }),
			"Antrea does not run"},
		{"kube-proxy", finding.Warning, func(f *doctor.Facts) {
			f.Network.Value.KubeProxyWindows = nil
			delete(*f.Services.Value, "kube-proxy")
		}, "kube-proxy does not run"},
		{"kube-proxy", finding.Info, func(f *doctor.Facts) {
			f.Network.Value.KubeProxyWindows, *f.Pods.Value = nil, nil
			delete(*f.Services.Value, "kube-proxy")
		}, "kube-proxy does not run"},
	}
}
