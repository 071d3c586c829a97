package preflight

import (
	"errors"

	"github.com/swdt-dev/swdt/internal/join/combination"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// errReportedElsewhere means that another check has reported the cause.
var errReportedElsewhere = errors.New("not checked: see the other problems")

// Check is one condition of a successful join.
type Check struct {
	ID    string // the name of the check in spec.kubernetes.join.ignorePreflightErrors
	Where finding.Side
	Looks string // the subject, in words

	// needs returns the error of a fact that the check reads, or nil if all these facts are known.
	// look runs the check on the facts, and returns its findings.
	needs func(*facts) error
	look  func(*facts) []finding.Finding
}

// unknown returns the reason why a fact that the check needs is unknown, or nil if all its
// facts are known.
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
		{"windows-version", finding.OnNode, "the version of Windows", nil, lookAtWindows},
		{"architecture", finding.OnNode, "the processor", nil, lookAtArchitecture},
		{"elevated", finding.OnNode, "the user's rights", nil, lookAtRights},
		{"disk-space", finding.OnNode, "the free disk space", nil, lookAtDisk},
		{"memory", finding.OnNode, "the memory", nil, lookAtMemory},
		{"memory-reservation", finding.OnNode, "the memory that pods leave to Windows", needReservation, lookAtReservation},
		{"pending-reboot", finding.OnNode, "pending reboots", nil, lookAtPendingReboot},
		{"containers-feature", finding.OnNode, "the Windows feature Containers", needFeatures, lookAtContainers},
		{"virtualization", finding.OnNode, "Hyper-V, for isolated pods", needFeatures, lookAtVirtualization},
		{"hostname", finding.OnNode, "the node's name", needName, lookAtHostname},
		{"node-address", finding.OnNode, "the node's address", needAddresses, lookAtAddress},
		{"clock", finding.OnNode, "the clock", needClocks, lookAtClock},
		{"ports", finding.OnNode, "kubelet's ports", needListeners, lookAtPorts},
		{"firewall", finding.OnNode, "the node's firewall", needFirewall, lookAtFirewall},
		{"leftovers", finding.OnNode, "what an earlier join has left", needFiles, lookAtLeftovers},
		{"membership", finding.OnNode, "which cluster it is a node of", needAuthorities, lookAtMembership},
		{"kubelet-service", finding.OnNode, "the service kubelet", needServices, lookAtKubeletService},
		{"container-runtime", finding.OnNode, "container runtimes", needServices, lookAtRuntimes},
		{"control-plane-name", finding.OnNode, "the control plane's name", nil, lookAtNames},
		{"control-plane-reachable", finding.OnNode, "the way to the API server", nil, lookAtReach},
		{"program-folders", finding.OnNode, "who may change programs", needChangeable, lookAtChangeable},
		{combination.Check, finding.OnNode, "Windows together with other programs", nil, lookAtCombinations},
		{"defender", finding.OnNode, "Microsoft Defender", needDefender, lookAtDefender},
	}
}

func clusterChecks() []Check {
	return []Check{
		{"api-server", finding.OnCluster, "the API server", nil, lookAtAPIServer},
		{"api-server-certificate", finding.OnCluster, "the API server's certificate", needCertificates,
			lookAtCertificates},
		{"permissions", finding.OnCluster, "the kubeconfig's permissions", needPermissions, lookAtPermissions},
		{"version-skew", finding.OnCluster, "the versions", needVersion, lookAtVersions},
		{"cluster-info", finding.OnCluster, "cluster-info and bootstrap tokens", needClusterInfo, lookAtClusterInfo},
		{"kubelet-config", finding.OnCluster, "kubelet-config", needKubeletConfig, lookAtKubeletConfig},
		{"node-name", finding.OnCluster, "nodes of the same name", needNamesake, lookAtNamesake},
		{"pod-network", finding.OnCluster, "the pod network", needCNI, lookAtPodNetwork},
		{"calico", finding.OnCluster, "Calico", needCNI, lookAtCalico},
		{"flannel", finding.OnCluster, "flannel", needCNI, lookAtFlannel},
		{"antrea", finding.OnCluster, "Antrea", needCNI, lookAtAntrea},
		{"kube-proxy", finding.OnCluster, "kube-proxy for Windows", needCNI, lookAtKubeProxy},
	}
}
