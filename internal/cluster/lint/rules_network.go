package lint

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// networkRules are about names that pods resolve, and NetworkPolicies.
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
		{
			ID: "np-flannel", Severity: finding.Warning, Effect: Ignored,
			Title:  "something enforces the NetworkPolicies",
			Means:  "flannel does not implement NetworkPolicies, and the API server accepts them: all connections pass.",
			Remedy: "use a pod network that enforces them on Windows, such as Calico or Antrea", Source: "https://github.com/flannel-io/flannel/blob/v0.27.4/README.md",
			object: policyOfFlannel,
			Bad:    policyExample + "---\n" + networkOf("kube-flannel-ds") + "---\n" + windowsOfPolicy, Good: policyExample + "---\n" + networkOf("calico-node") + "---\n" + windowsOfPolicy,
		},
	}
}

const policyExample = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: deny}\nspec: {podSelector: {}, policyTypes: [Ingress]}\n"

// networkOf returns the DaemonSet of a pod network, as far as it counts.
func networkOf(name string) string {
	return "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: " + name + ", namespace: kube-system}\nspec: {template: {spec: {nodeSelector: {kubernetes.io/os: linux}, " +
		"containers: [{name: a, image: 'a:1'}]}}}\n"
}

// windowsOfPolicy is a pod that the policy selects.
const windowsOfPolicy = exampleHead + exampleOS + exampleNode + exampleList

// enforcers are the beginnings of the names of DaemonSets that enforce NetworkPolicies.
func enforcers() []string {
	return []string{"calico", "canal", "antrea", "cilium", "kube-router", "weave", "azure-npm", "kube-network-policies", "ovn"}
}

func policyOfFlannel(o *object, m *manifests, found report) {
	if o.kind != "NetworkPolicy" || o.group != "networking.k8s.io" || !m.hasWindows[o.namespace] {
		return
	}
	begins := func(names []string) bool {
		return slices.ContainsFunc(m.networks, func(n string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(n, name) })
		})
	}
	if begins([]string{"kube-flannel"}) && !begins(enforcers()) {
		found(seen{what: "flannel ignores NetworkPolicies, and no DaemonSet of the manifests enforces them"})
	}
}

func hostNetPolicy(p *pods, found report) {
	if p.spec.DNSPolicy != corev1.DNSClusterFirstWithHostNet {
		return
	}
	s := seen{at: p.at("dnsPolicy"), what: "Windows does not support ClusterFirstWithHostNet: the pods resolve names as the node does"}
	if !p.isHostProcess() {
		s.byHand = p.spec.HostNetwork // kubelet then gives pods with ClusterFirst the node's DNS
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
