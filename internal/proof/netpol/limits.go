package netpol

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// Limit is a part of policies that a pod network does not enforce on Windows nodes, as its own code says. Cells that
// differ for that reason alone are no failure of the cluster.
type Limit struct {
	Network string `json:"network"` // such as Calico
	What    string `json:"what"`    // what the network does on Windows nodes
	Source  string `json:"source"`  // a URL
}

// limit is a Limit with what it leaves of policies.
type limit struct {
	Limit
	daemonSet string // of the network, on Windows nodes
	// left returns what the network enforces of the spec of a policy on Windows nodes; false: nothing of the policy.
	left func(networkingv1.NetworkPolicySpec) (networkingv1.NetworkPolicySpec, bool)
}

// limits returns the limits of all networks that swdt knows, as read on 29 and 30 November 2026.
func limits() []limit {
	return []limit{
		{
			Limit: Limit{Network: "Calico", What: "skips rules with named ports and with except on Windows nodes",
				Source: "https://github.com/projectcalico/calico/blob/master/felix/dataplane/windows/policysets/policysets.go"},
			daemonSet: "calico-node-windows", left: leftByCalico,
		},
		{
			Limit: Limit{Network: "Azure network policies", What: "skips policies with named ports or with except on Windows nodes",
				Source: "https://github.com/Azure/azure-container-networking/blob/master/npm/pkg/controlplane/translation/translatePolicy.go"},
			daemonSet: "azure-npm-win", left: leftByAzure,
		},
	}
}

// limitOf returns the limit of the cluster's pod network; nil if it has none, or if the cluster does not list DaemonSets:
// then each difference counts.
func limitOf(ctx context.Context, c *cluster.Cluster) *limit {
	sets, err := c.Clientset().AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for _, l := range limits() {
		for _, d := range sets.Items {
			if d.Name == l.daemonSet {
				return &l
			}
		}
	}
	return nil
}

// limitedCells returns, for each of the cells, whether the limit changes its verdict: the policies that select a pod on
// Windows are those that the network enforces there.
func (m Model) limitedCells(l *limit, policies []networkingv1.NetworkPolicy, all []cell) ([]bool, error) {
	limited := make([]bool, len(all))
	if l == nil {
		return limited, nil
	}
	var enforced []networkingv1.NetworkPolicy
	for _, p := range policies {
		if spec, any := l.left(*p.Spec.DeepCopy()); any {
			p.Spec = spec
			enforced = append(enforced, p)
		}
	}
	reduced, err := m.cells(enforced)
	if err != nil {
		return nil, fmt.Errorf("the policies that %s enforces: %w", l.Network, err)
	}
	byPlace := map[place]cell{}
	for _, c := range reduced {
		byPlace[place{c.from, c.to, c.port}] = c
	}
	onWindows := func(pod int) bool { return m.Pods[pod].System == windows && !m.Pods[pod].Host }
	for i, c := range all {
		verdict, enforced := c.verdict, byPlace[place{c.from, c.to, c.port}].verdict
		if onWindows(c.from) {
			verdict.Egress = enforced.Egress
		}
		if onWindows(c.to) {
			verdict.Ingress = enforced.Ingress
		}
		limited[i] = verdict.Allowed() != c.verdict.Allowed() && !c.verdict.Undefined()
	}
	return limited, nil
}

// leftByCalico leaves out what Calico's felix skips. Calico makes one rule of the ports of each protocol with each peer,
// and felix on Windows skips a rule with a named port or a negative match, as except becomes one.
func leftByCalico(spec networkingv1.NetworkPolicySpec) (networkingv1.NetworkPolicySpec, bool) {
	types := spec.PolicyTypes
	if len(types) == 0 { // a policy keeps its directions without its rules
		types = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(spec.Egress) > 0 {
			types = append(types, networkingv1.PolicyTypeEgress)
		}
	}
	left := networkingv1.NetworkPolicySpec{PodSelector: spec.PodSelector, PolicyTypes: types}
	for _, r := range spec.Ingress {
		if ports, peers, any := leftOfRule(r.Ports, r.From); any {
			left.Ingress = append(left.Ingress, networkingv1.NetworkPolicyIngressRule{Ports: ports, From: peers})
		}
	}
	for _, r := range spec.Egress {
		if ports, peers, any := leftOfRule(r.Ports, r.To); any {
			left.Egress = append(left.Egress, networkingv1.NetworkPolicyEgressRule{Ports: ports, To: peers})
		}
	}
	return left, true
}

// leftOfRule returns the ports and the peers of a rule that felix does not skip; false: it skips the rule.
func leftOfRule(ports []networkingv1.NetworkPolicyPort, peers []networkingv1.NetworkPolicyPeer) (
	[]networkingv1.NetworkPolicyPort, []networkingv1.NetworkPolicyPeer, bool) {
	var skipped []corev1.Protocol
	for _, p := range ports {
		if isNamed(p) {
			skipped = append(skipped, protocolOf(p))
		}
	}
	leftPorts := slices.DeleteFunc(slices.Clone(ports), func(p networkingv1.NetworkPolicyPort) bool {
		return slices.Contains(skipped, protocolOf(p))
	})
	leftPeers := slices.DeleteFunc(slices.Clone(peers), hasExcept)
	return leftPorts, leftPeers, len(leftPorts) > 0 == (len(ports) > 0) && len(leftPeers) > 0 == (len(peers) > 0)
}

// leftByAzure leaves out a whole policy with a named port or an except, which the controller does not translate.
func leftByAzure(spec networkingv1.NetworkPolicySpec) (networkingv1.NetworkPolicySpec, bool) {
	for _, r := range spec.Ingress {
		if slices.ContainsFunc(r.Ports, isNamed) || slices.ContainsFunc(r.From, hasExcept) {
			return spec, false
		}
	}
	for _, r := range spec.Egress {
		if slices.ContainsFunc(r.Ports, isNamed) || slices.ContainsFunc(r.To, hasExcept) {
			return spec, false
		}
	}
	return spec, true
}

func isNamed(p networkingv1.NetworkPolicyPort) bool {
	return p.Port != nil && p.Port.Type == intstr.String
}

func hasExcept(p networkingv1.NetworkPolicyPeer) bool {
	return p.IPBlock != nil && len(p.IPBlock.Except) > 0
}

func protocolOf(p networkingv1.NetworkPolicyPort) corev1.Protocol {
	if p.Protocol == nil {
		return corev1.ProtocolTCP
	}
	return *p.Protocol
}

// sentence describes the limit for people.
func (l Limit) sentence(cells int) string {
	return fmt.Sprintf("%s differ by a known limit: %s %s (%s)", plural(cells, "cell"), l.Network, l.What, l.Source)
}

// limitSentence returns the limits of the report in one line; "" if no cell differs by one.
func (r Report) limitSentence() string {
	cells := 0
	for _, c := range r.Cases {
		cells += c.Limited
	}
	var all []string
	for _, l := range r.Limits {
		all = append(all, l.sentence(cells))
	}
	return strings.Join(all, "; ")
}
