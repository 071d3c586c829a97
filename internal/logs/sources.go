package logs

// Source is a program whose log people ask for by name.
type Source struct {
	Name  string
	About string
	// Services are the Windows services that write it. What their command lines
	// and nssm's settings say about log files comes before all else; then come
	// the usual places for a service, see usual.
	Services []string
	// Paths are further places, each a pattern: * stands for anything within a
	// name. All that exist are the source's.
	Paths []string
	// Pods are the containers that do the same as a service, where it runs as a
	// pod: namespace/name, with the * of Paths.
	Pods []string
}

// Sources are the known ones: to add one, add a line. What swdt logs without
// arguments shows comes first: see byDefault.
func Sources() []Source {
	return []Source{
		{Name: "kubelet", About: "the node's agent of Kubernetes", Services: []string{"kubelet"}},
		{Name: "containerd", About: "the container runtime", Services: []string{"containerd"},
			Paths: []string{`C:\ProgramData\containerd\root\panic.log`}},
		{Name: "kube-proxy", About: "Services on the node", Services: []string{"kube-proxy"},
			Pods: []string{"kube-system/kube-proxy-windows-*"}},
		{Name: "calico", About: "Calico's node agent and Felix", Services: []string{"CalicoNode", "CalicoFelix", "CalicoConfd"},
			Paths: []string{`C:\CalicoWindows\logs\*.log`, `C:\var\log\calico\cni\cni.log`},
			Pods:  []string{"calico-system/calico-node-windows-*"}},
		{Name: "antrea", About: "Antrea's agent", Services: []string{"antrea-agent"},
			Paths: []string{`C:\k\antrea\logs\antrea-agent*.INFO`, `C:\k\antrea\logs\antrea-agent*.log`},
			Pods:  []string{"kube-system/antrea-agent-windows-*"}},
		{Name: "ovs", About: "Open vSwitch, under Antrea", Services: []string{"ovs-vswitchd"},
			Paths: []string{`C:\openvswitch\var\log\openvswitch\*.log`}},
		{Name: "flannel", About: "flannel's daemon", Services: []string{"flanneld"},
			Pods: []string{"kube-flannel/kube-flannel-ds-windows-*"}},
		{Name: "csi-proxy", About: "volumes", Services: []string{"csi-proxy"},
			Paths: []string{`C:\etc\kubernetes\logs\csi-proxy*.log`},
			Pods:  []string{"kube-system/csi-proxy-*"}},
		{Name: "sshd", About: "OpenSSH, where it logs to a file", Services: []string{"sshd"},
			Paths: []string{`C:\ProgramData\ssh\logs\sshd.log`}},
		{Name: "rancher-wins", About: "RKE2's and Rancher's agent", Services: []string{"rancher-wins", "rke2"},
			Paths: []string{`C:\var\lib\rancher\rke2\agent\logs\kubelet.log`, `C:\var\lib\rancher\rke2\agent\containerd\containerd.log`}},
	}
}

// byDefault are the sources that are shown where none is asked for.
func byDefault() []string { return []string{"kubelet", "containerd", "kube-proxy"} }

// defaultPodLogs is where the kubelet lets containers log.
const defaultPodLogs = `C:\var\log\pods`

func tableEntry(name string) (Source, bool) {
	for _, source := range Sources() {
		if source.Name == name {
			return source, true
		}
	}
	return Source{}, false
}
