package lint

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// networkRules are about names that pods resolve.
func networkRules() []Rule {
	const dnsAt = "https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/#dns-windows"
	return []Rule{
		{
			ID: "dns-hostnet", Severity: finding.Warning, Effect: Ignored, fix: removal(),
			Title:  "dnsPolicy is not ClusterFirstWithHostNet",
			Means:  "Windows does not support ClusterFirstWithHostNet: HostProcess pods are in the node's network and resolve names as the node does, for others it acts as ClusterFirst.",
			Remedy: "remove dnsPolicy, and use full names of Services with the address of the cluster's DNS", Source: dnsAt, windows: hostNetPolicy,
			Bad: "dnsPolicy: ClusterFirstWithHostNet", Good: "dnsPolicy: ClusterFirst",
		},
		{
			ID: "dns-options", Severity: finding.Info, Effect: Ignored, fix: removal(),
			Title:  "dnsConfig has no options",
			Means:  "Windows has no resolv.conf: only nameservers and searches reach the pods. A name with a dot is tried as it is first.",
			Remedy: "remove the options, and use full names", Source: dnsAt, windows: resolverOptions,
			Bad: "dnsConfig: {options: [{name: ndots, value: '2'}]}", Good: "dnsConfig: {searches: [example.org]}",
		},
	}
}

func hostNetPolicy(p *pods, found report) {
	if p.spec.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
		return
	}
	s := seen{at: p.at("dnsPolicy"), what: "Windows does not support ClusterFirstWithHostNet: the pods resolve names as the node does"}
	if !p.isHostProcess() {
		s.what, s.remedy = "ClusterFirstWithHostNet has the effect of ClusterFirst on Windows", "remove dnsPolicy"
	}
	found(s)
}

func resolverOptions(p *pods, found report) {
	if p.spec.DNSConfig != nil && len(p.spec.DNSConfig.Options) > 0 {
		found(seen{at: p.at("dnsConfig", "options"), what: fmt.Sprintf("%s of dnsConfig has no effect on Windows",
			finding.Several(len(p.spec.DNSConfig.Options), "option"))})
	}
}
