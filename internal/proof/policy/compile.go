package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// New returns a set of policies. Each policy must have a name and a namespace. The error has all
// problems of all policies, each with its policy and field.
func New(policies []networkingv1.NetworkPolicy) (*Set, error) {
	s := &Set{}
	var problems []error
	for i := range policies {
		c := &compiler{policy: &policies[i]}
		ingress, egress := c.compile()
		s.ingress, s.egress = append(s.ingress, ingress...), append(s.egress, egress...)
		problems = append(problems, c.problems...)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return s, nil
}

// Types returns the directions that a policy isolates. If the policy does not list them, it isolates
// ingress, and egress if it has a rule for egress, as the API server's defaults do.
func Types(spec networkingv1.NetworkPolicySpec) []networkingv1.PolicyType {
	switch {
	case len(spec.PolicyTypes) > 0:
		return spec.PolicyTypes
	case len(spec.Egress) > 0:
		return []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	}
	return []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
}

// compiler compiles one policy, and collects its problems.
type compiler struct {
	policy   *networkingv1.NetworkPolicy
	problems []error
}

func (c *compiler) wrong(field, format string, values ...any) {
	c.problems = append(c.problems, fmt.Errorf("NetworkPolicy %s/%s: %s: %s", c.policy.Namespace, c.policy.Name, field,
		fmt.Sprintf(format, values...)))
}

func (c *compiler) compile() (ingress, egress []compiled) {
	spec := c.policy.Spec
	if c.policy.Name == "" {
		c.wrong("metadata.name", "the policy has no name; give it one")
	}
	base := compiled{namespace: c.policy.Namespace, name: c.policy.Name,
		pods: c.selector("spec.podSelector", &spec.PodSelector)}
	in, out := base, base
	for i, r := range spec.Ingress {
		field := fmt.Sprintf("spec.ingress[%d]", i)
		in.rules = append(in.rules, rule{c.peers(field+".from", r.From), c.ports(field+".ports", r.Ports)})
	}
	for i, r := range spec.Egress {
		field := fmt.Sprintf("spec.egress[%d]", i)
		out.rules = append(out.rules, rule{c.peers(field+".to", r.To), c.ports(field+".ports", r.Ports)})
	}
	types := Types(spec)
	for _, t := range types {
		if t != networkingv1.PolicyTypeIngress && t != networkingv1.PolicyTypeEgress {
			c.wrong("spec.policyTypes", "there is no type %q; write Ingress, Egress or both", t)
		}
	}
	if slices.Contains(types, networkingv1.PolicyTypeIngress) {
		ingress = []compiled{in}
	}
	if slices.Contains(types, networkingv1.PolicyTypeEgress) {
		egress = []compiled{out}
	}
	return ingress, egress
}

func (c *compiler) selector(field string, s *metav1.LabelSelector) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		c.wrong(field, "%v", err)
		return labels.Nothing()
	}
	return selector
}

func (c *compiler) peers(field string, all []networkingv1.NetworkPolicyPeer) []peer {
	var peers []peer
	for i, p := range all {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch selects := p.PodSelector != nil || p.NamespaceSelector != nil; {
		case p.IPBlock != nil && selects:
			c.wrong(at, "an ipBlock excludes selectors; put the selectors into a peer of their own")
		case p.IPBlock != nil:
			peers = append(peers, peer{block: c.block(at+".ipBlock", p.IPBlock)})
		case selects:
			peers = append(peers, c.selected(at, p))
		default:
			c.wrong(at, "the peer is empty; write podSelector, namespaceSelector or ipBlock")
		}
	}
	return peers
}

func (c *compiler) selected(field string, p networkingv1.NetworkPolicyPeer) peer {
	compiled := peer{namespace: c.policy.Namespace, pods: labels.Everything()}
	if p.NamespaceSelector != nil {
		compiled.namespaces = c.selector(field+".namespaceSelector", p.NamespaceSelector)
	}
	if p.PodSelector != nil {
		compiled.pods = c.selector(field+".podSelector", p.PodSelector)
	}
	return compiled
}

func (c *compiler) block(field string, b *networkingv1.IPBlock) *block {
	compiled := &block{}
	in, err := netip.ParsePrefix(b.CIDR)
	if err != nil {
		c.wrong(field+".cidr", "%q is no range of addresses; write it as in 10.0.0.0/8", b.CIDR)
		return compiled
	}
	compiled.in = in.Masked()
	for i, text := range b.Except {
		at := fmt.Sprintf("%s.except[%d]", field, i)
		not, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			c.wrong(at, "%q is no range of addresses; write it as in 10.0.0.0/8", text)
		case not.Bits() <= in.Bits() || !compiled.in.Contains(not.Addr()):
			c.wrong(at, "%s is no part of %s; except lists ranges inside of cidr", text, b.CIDR)
		default:
			compiled.not = append(compiled.not, not.Masked())
		}
	}
	return compiled
}

func (c *compiler) ports(field string, all []networkingv1.NetworkPolicyPort) []ports {
	var compiled []ports
	for i, p := range all {
		compiled = append(compiled, c.port(fmt.Sprintf("%s[%d]", field, i), p))
	}
	return compiled
}

func (c *compiler) port(field string, p networkingv1.NetworkPolicyPort) ports {
	compiled := ports{protocol: corev1.ProtocolTCP}
	if p.Protocol != nil {
		compiled.protocol = *p.Protocol
	}
	if !slices.Contains(Protocols(), compiled.protocol) {
		c.wrong(field+".protocol", "there is no protocol %q; write TCP, UDP or SCTP", compiled.protocol)
	}
	switch {
	case p.Port == nil && p.EndPort != nil:
		c.wrong(field+".endPort", "a range begins with port, which is missing")
	case p.Port == nil:
		compiled.all = true
	case p.Port.Type == intstr.String:
		if compiled.name = p.Port.StrVal; compiled.name == "" {
			c.wrong(field+".port", "the name is empty")
		}
		if p.EndPort != nil {
			c.wrong(field+".endPort", "a range begins with a number, and port is the name %q", p.Port.StrVal)
		}
	default:
		compiled.first, compiled.last = p.Port.IntVal, p.Port.IntVal
		if p.EndPort != nil {
			compiled.last = *p.EndPort
		}
		c.checkRange(field, compiled.first, compiled.last)
	}
	return compiled
}

func (c *compiler) checkRange(field string, first, last int32) {
	if first < 1 || first > 65535 {
		c.wrong(field+".port", "%d is no port; write a number from 1 to 65535", first)
	}
	if last < first || last > 65535 {
		c.wrong(field+".endPort", "%d is not in the range from port to 65535", last)
	}
}

// Protocols returns the protocols that a policy can name.
func Protocols() []corev1.Protocol {
	return []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
}
