package cluster

import (
	"context"
	"errors"
)

// CNI is the pod network as far as it shows in the API: each network that was
// found, more than one where that is so.
type CNI struct {
	Calico  *Calico  `json:"calico,omitempty"`
	Flannel *Flannel `json:"flannel,omitempty"`
	Antrea  *Antrea  `json:"antrea,omitempty"`
	// KubeProxyWindows names the DaemonSets that run kube-proxy on Windows nodes.
	KubeProxyWindows []string `json:"kubeProxyWindows,omitempty"`
}

// Calico, installed by its operator or by manifests.
type Calico struct {
	Operator bool   `json:"operator"`
	BGP      string `json:"bgp,omitempty"` // Enabled, Disabled; "" where it is not said
	// WindowsDataplane is HNS or Disabled; "" where it is not said, which is Disabled.
	WindowsDataplane string   `json:"windowsDataplane,omitempty"`
	ServiceCIDRs     []string `json:"serviceCIDRs,omitempty"`
	// StrictAffinity as Windows needs it; a cluster that says nothing has it off.
	StrictAffinity bool     `json:"strictAffinity"`
	Pools          []IPPool `json:"pools,omitempty"`
	// ServicesEndpoint is whether ConfigMap kubernetes-services-endpoint tells
	// Calico on Windows where the API server is.
	ServicesEndpoint bool `json:"servicesEndpoint"`
	// WindowsDaemonSets are its DaemonSets for Windows nodes.
	WindowsDaemonSets []string `json:"windowsDaemonSets,omitempty"`
}

// IPPool is a range of pod addresses.
type IPPool struct {
	Name  string `json:"name"`
	CIDR  string `json:"cidr"`
	IPIP  string `json:"ipip,omitempty"`  // Always, CrossSubnet, Never; Windows cannot
	VXLAN string `json:"vxlan,omitempty"` // Always, CrossSubnet, Never
}

// Flannel's settings, of its ConfigMap.
type Flannel struct {
	Namespace string `json:"namespace"`
	Network   string `json:"network,omitempty"`
	Backend   string `json:"backend,omitempty"` // vxlan, host-gw
	VNI       int    `json:"vni,omitempty"`     // Windows needs 4096; Linux's default is 1
	Port      int    `json:"port,omitempty"`    // Windows needs 4789; Linux's default is 8472
	// WindowsDaemonSets are its DaemonSets for Windows nodes.
	WindowsDaemonSets []string `json:"windowsDaemonSets,omitempty"`
}

// Antrea.
type Antrea struct {
	WindowsDaemonSets []string `json:"windowsDaemonSets,omitempty"`
}

// CNI looks for the networks that are known to work with Windows nodes. A
// resource that the cluster does not have is no error.
func (c *Cluster) CNI(ctx context.Context) (CNI, error) { return CNI{}, errors.ErrUnsupported }
