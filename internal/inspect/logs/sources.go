package logs

// Source is a program, with the places of its logs. Users name a source to read these logs.
type Source struct {
	Name  string
	About string
	// Services are the Windows services that write the logs. The log files in the services' command
	// lines and in nssm's settings come first, then the usual log files of a service: see
	// servicelog.Usual.
	Services []string
	// Paths are patterns of further files: * matches any text within a name. All files
	// that exist belong to the source.
	Paths []string
	// Pods are the pods that replace the services in some clusters: namespace/name,
	// with * as in Paths.
	Pods []string
}

// Sources returns the known sources. To add a source, add an entry. The sources that
// `swdt logs` reads without arguments are first: see byDefault.
func Sources() []Source {
	return []Source{
		{Name: "kubelet", About: "Kubernetes' node agent", Services: []string{"kubelet"}},
		{Name: "containerd", About: "the container runtime", Services: []string{"containerd"},
			Paths: []string{`C:\ProgramData\containerd\root\panic.log`}},
		{Name: "kube-proxy", About: "Services on the node", Services: []string{"kube-proxy"},
			Pods: []string{"kube-system/kube-proxy-windows-*"}},
		{Name: "calico", About: "Calico's node agent and Felix",
			Services: []string{"CalicoNode", "CalicoFelix", "CalicoConfd"},
			Paths:    []string{`C:\CalicoWindows\logs\*.log`, `C:\var\log\calico\cni\cni.log`},
			Pods:     []string{"calico-system/calico-node-windows-*"}},
		{Name: "antrea", About: "Antrea's agent", Services: []string{"antrea-agent"},
			Paths: []string{`C:\k\antrea\logs\antrea-agent*.INFO`, `C:\k\antrea\logs\antrea-agent*.log`},
			Pods:  []string{"kube-system/antrea-agent-windows-*"}},
		{Name: "ovs", About: "Open vSwitch, under Antrea", Services: []string{"ovs-vswitchd"},
			Paths: []string{`C:\openvswitch\var\log\openvswitch\*.log`}},
		{Name: "flannel", About: "flannel's daemon", Services: []string{"flanneld"},
			Pods: []string{"kube-flannel/kube-flannel-ds-windows-*"}},
		{Name: "azure-cni", About: "Azure's network plugin", Services: []string{"azurecns"},
			// The plugin logs into the working folder of its runtime: containerd's is System32.
			Paths: []string{`C:\k\azure-vnet*.log`, `C:\k\azure-cns*.log`, `C:\k\azurecns\*.log`, `C:\cni\azure-vnet*.log`,
				`C:\Windows\System32\azure-vnet*.log`},
			Pods: []string{"kube-system/azure-cns-win-*"}},
		{Name: "ovn", About: "OVN-Kubernetes' hybrid overlay", Services: []string{"hybrid-overlay-node"},
			Paths: []string{`C:\var\log\hybrid-overlay\*.log`}},
		{Name: "vpc-cni", About: "Amazon's network plugin",
			Paths: []string{`C:\ProgramData\Amazon\EKS\logs\*.log`, `C:\var\log\vpc-*.log`}},
		{Name: "csi-proxy", About: "volumes", Services: []string{"csi-proxy"},
			Paths: []string{`C:\etc\kubernetes\logs\csi-proxy*.log`},
			Pods:  []string{"kube-system/csi-proxy-*"}},
		{Name: "sshd", About: "OpenSSH, if it logs to a file", Services: []string{"sshd"},
			Paths: []string{`C:\ProgramData\ssh\logs\sshd.log`}},
		{Name: "rancher-wins", About: "RKE2's and Rancher's agent", Services: []string{"rancher-wins", "rke2"},
			Paths: []string{`C:\var\lib\rancher\rke2\agent\logs\kubelet.log`,
				`C:\var\lib\rancher\rke2\agent\containerd\containerd.log`}},
	}
}

// byDefault returns the sources that are read if none is named.
func byDefault() []string { return []string{"kubelet", "containerd", "kube-proxy"} }

// defaultPodLogs is kubelet's default folder of containers' logs.
const defaultPodLogs = `C:\var\log\pods`

func tableEntry(name string) (Source, bool) {
	for _, source := range Sources() {
		if source.Name == name {
			return source, true
		}
	}
	return Source{}, false
}
