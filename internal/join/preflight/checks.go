package preflight

import "errors"

// errSaid means that another check has reported the cause.
var errSaid = errors.New("not looked at: see the other problems")

// Check is one condition of a successful join.
type Check struct {
	ID    string // for spec.kubernetes.join.ignorePreflightErrors
	Where Where
	Looks string // the subject, in words

	// needs returns the error of a fact that look reads, or nil if all of them are known.
	needs func(*facts) error
	look  func(*facts) []Problem
}

// unknown returns why a fact that the check needs is unknown.
func (c Check) unknown(f *facts) error {
	if c.needs == nil {
		return nil
	}
	return c.needs(f)
}

// Checks returns all checks, in the order in which they run.
func Checks() []Check {
	return append(nodeChecks(), clusterChecks()...)
}

func nodeChecks() []Check {
	return []Check{
		{"windows-version", OnNode, "the version of Windows", nil, lookAtWindows},
		{"architecture", OnNode, "the processor", nil, lookAtArchitecture},
		{"elevated", OnNode, "the user's rights", nil, lookAtRights},
		{"disk-space", OnNode, "the free disk space", nil, lookAtDisk},
		{"memory", OnNode, "the memory", nil, lookAtMemory},
		{"pending-reboot", OnNode, "pending reboots", nil, lookAtPendingReboot},
		{"containers-feature", OnNode, "the Windows feature Containers", needFeatures, lookAtContainers},
		{"virtualization", OnNode, "Hyper-V, for isolated pods", needFeatures, lookAtVirtualization},
		{"hostname", OnNode, "the node's name", needName, lookAtHostname},
		{"clock", OnNode, "the clock", needClocks, lookAtClock},
		{"ports", OnNode, "kubelet's ports", needListeners, lookAtPorts},
		{"leftovers", OnNode, "what an earlier join has left", needFiles, lookAtLeftovers},
		{"membership", OnNode, "which cluster it is a node of", needAuthorities, lookAtMembership},
		{"kubelet-service", OnNode, "the service kubelet", needServices, lookAtKubeletService},
		{"container-runtime", OnNode, "container runtimes", needServices, lookAtRuntimes},
		{"control-plane-name", OnNode, "the control plane's name", nil, lookAtNames},
		{"control-plane-reachable", OnNode, "the way to the API server", nil, lookAtReach},
		{"program-folders", OnNode, "who may change programs", needChangeable, lookAtChangeable},
		{"defender", OnNode, "Microsoft Defender", needDefender, lookAtDefender},
	}
}

func clusterChecks() []Check {
	return []Check{
		{"api-server", OnCluster, "the API server", nil, lookAtAPIServer},
		{"permissions", OnCluster, "the kubeconfig's permissions", needPermissions, lookAtPermissions},
		{"version-skew", OnCluster, "the versions", needVersion, lookAtVersions},
		{"cluster-info", OnCluster, "cluster-info and bootstrap tokens", needClusterInfo, lookAtClusterInfo},
		{"kubelet-config", OnCluster, "kubelet-config", needKubeletConfig, lookAtKubeletConfig},
		{"node-name", OnCluster, "nodes of the same name", needNamesake, lookAtNamesake},
		{"pod-network", OnCluster, "the pod network", needCNI, lookAtPodNetwork},
		{"calico", OnCluster, "Calico", needCNI, lookAtCalico},
		{"flannel", OnCluster, "flannel", needCNI, lookAtFlannel},
		{"antrea", OnCluster, "Antrea", needCNI, lookAtAntrea},
		{"kube-proxy", OnCluster, "kube-proxy for Windows", needCNI, lookAtKubeProxy},
	}
}
