package policy_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/swdt-dev/swdt/internal/proof/policy"
)

// definition evaluates policies as the API's documentation defines them, without Kubernetes' packages
// for selectors and without ranges: it lists what is allowed, and looks whether the connection is in it. It returns
// allowed, denied or undefined.
func definition(all []networkingv1.NetworkPolicy, c policy.Connection) string {
	if c.From.Namespace == c.To.Namespace && c.From.Name == c.To.Name {
		return "allowed"
	}
	isolatedIn, isolatedOut, allowedIn, allowedOut := false, false, false, false
	for _, p := range all {
		ingress, egress := types(p.Spec)
		if ingress && p.Namespace == c.To.Namespace && selects(p.Spec.PodSelector, c.To.Labels) {
			isolatedIn = true
			for _, r := range p.Spec.Ingress {
				if anyPeer(p.Namespace, r.From, c.From) && listed(r.Ports, c) {
					allowedIn = true
				}
			}
		}
		if egress && p.Namespace == c.From.Namespace && selects(p.Spec.PodSelector, c.From.Labels) {
			isolatedOut = true
			for _, r := range p.Spec.Egress {
				if anyPeer(p.Namespace, r.To, c.To) && listed(r.Ports, c) {
					allowedOut = true
				}
			}
		}
	}
	if c.From.Host || c.To.Host {
		return definitionOfNodes(c, isolatedIn, isolatedOut)
	}
	if (!isolatedIn || allowedIn) && (!isolatedOut || allowedOut) {
		return "allowed"
	}
	return "denied"
}

// definitionOfNodes is the definition for traffic from or to nodes: a pod's own node is always allowed, and so is
// what no policy isolates. Nothing is denied.
func definitionOfNodes(c policy.Connection, isolatedIn, isolatedOut bool) string {
	switch {
	case c.From.Host != c.To.Host && c.From.Node == c.To.Node && c.To.Node != "":
		return "allowed"
	case isolatedIn || isolatedOut:
		return "undefined"
	}
	return "allowed"
}

func types(spec networkingv1.NetworkPolicySpec) (ingress, egress bool) {
	if spec.PolicyTypes == nil {
		return true, len(spec.Egress) > 0
	}
	for _, t := range spec.PolicyTypes {
		ingress, egress = ingress || t == "Ingress", egress || t == "Egress"
	}
	return ingress, egress
}

func selects(s metav1.LabelSelector, labels map[string]string) bool {
	for key, value := range s.MatchLabels {
		if has, ok := labels[key]; !ok || has != value {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		has, ok := labels[e.Key]
		in := false
		for _, v := range e.Values {
			in = in || ok && v == has
		}
		fits := map[metav1.LabelSelectorOperator]bool{metav1.LabelSelectorOpIn: in, metav1.LabelSelectorOpNotIn: !in,
			metav1.LabelSelectorOpExists: ok, metav1.LabelSelectorOpDoesNotExist: !ok}
		if !fits[e.Operator] {
			return false
		}
	}
	return true
}

func anyPeer(namespace string, peers []networkingv1.NetworkPolicyPeer, other policy.Pod) bool {
	if len(peers) == 0 {
		return true
	}
	for _, p := range peers {
		if p.IPBlock != nil {
			if inside(p.IPBlock.CIDR, other.Address) && !slices.ContainsFunc(p.IPBlock.Except, func(e string) bool {
				return inside(e, other.Address)
			}) {
				return true
			}
			continue
		}
		inNamespace := other.Namespace == namespace
		if p.NamespaceSelector != nil {
			inNamespace = selects(*p.NamespaceSelector, other.NamespaceLabels)
		}
		if inNamespace && (p.PodSelector == nil || selects(*p.PodSelector, other.Labels)) {
			return true
		}
	}
	return false
}

// inside compares an address with a range bit by bit.
func inside(cidr string, a netip.Addr) bool {
	prefix := netip.MustParsePrefix(cidr)
	x, y := prefix.Addr().As4(), a.As4()
	for bit := range prefix.Bits() {
		if x[bit/8]>>(7-bit%8)&1 != y[bit/8]>>(7-bit%8)&1 {
			return false
		}
	}
	return true
}

// listed lists all ports that a rule allows, and looks the connection's up.
func listed(all []networkingv1.NetworkPolicyPort, c policy.Connection) bool {
	if len(all) == 0 {
		return true
	}
	type port struct {
		protocol corev1.Protocol
		number   int32
	}
	list := map[port]bool{}
	for _, p := range all {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		for number := int32(50); number < 90; number++ { // all ports of the test
			fits := p.Port == nil
			if p.Port != nil && p.Port.Type == intstr.Int {
				fits = p.Port.IntVal == number || p.EndPort != nil && p.Port.IntVal <= number && number <= *p.EndPort
			}
			if p.Port != nil && p.Port.Type == intstr.String {
				for _, named := range c.To.Ports {
					fits = fits || named.Name == p.Port.StrVal && named.Number == number && named.Protocol == protocol
				}
			}
			if fits {
				list[port{protocol, number}] = true
			}
		}
	}
	return list[port{c.Protocol, c.Port}]
}

// generator makes random valid policies over the labels, addresses and ports of world.
type generator struct{ *rand.Rand }

func pick[T any](g generator, all ...T) T { return all[g.IntN(len(all))] }

func (g generator) policy(i int) networkingv1.NetworkPolicy {
	p := networkingv1.NetworkPolicy{}
	p.Namespace, p.Name = pick(g, "x", "y"), string(rune('a'+i))
	p.Spec.PodSelector = g.selector("pod")
	switch g.IntN(4) {
	case 0:
		p.Spec.PolicyTypes = []networkingv1.PolicyType{"Ingress"}
	case 1:
		p.Spec.PolicyTypes = []networkingv1.PolicyType{"Egress"}
	case 2:
		p.Spec.PolicyTypes = []networkingv1.PolicyType{"Ingress", "Egress"}
	}
	for range g.IntN(3) {
		p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{From: g.peers(), Ports: g.ports()})
	}
	for range g.IntN(3) {
		p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: g.peers(), Ports: g.ports()})
	}
	return p
}

func (g generator) selector(key string) metav1.LabelSelector {
	value := func() string { return pick(g, "a", "b", "c", "x", "y", "1") }
	s := metav1.LabelSelector{}
	switch g.IntN(4) {
	case 0:
	case 1:
		s.MatchLabels = map[string]string{key: value()}
	default:
		for range 1 + g.IntN(2) {
			e := metav1.LabelSelectorRequirement{Key: pick(g, key, "odd", "missing"), Operator: pick(g, metav1.LabelSelectorOpIn,
				metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}
			if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
				e.Values = []string{value(), value()}
			}
			s.MatchExpressions = append(s.MatchExpressions, e)
		}
	}
	return s
}

func (g generator) peers() (all []networkingv1.NetworkPolicyPeer) {
	for range g.IntN(3) {
		pods, namespaces := g.selector("pod"), g.selector("ns")
		block := pick(g, networkingv1.IPBlock{CIDR: "10.0.0.0/23", Except: []string{"10.0.1.0/31"}},
			networkingv1.IPBlock{CIDR: "10.0.0.0/30"}, networkingv1.IPBlock{CIDR: "0.0.0.0/0"},
			networkingv1.IPBlock{CIDR: "10.0.1.7/24", Except: []string{"10.0.1.2/32"}},
			networkingv1.IPBlock{CIDR: "192.168.0.0/16"})
		all = append(all, pick(g,
			networkingv1.NetworkPolicyPeer{PodSelector: &pods},
			networkingv1.NetworkPolicyPeer{NamespaceSelector: &namespaces},
			networkingv1.NetworkPolicyPeer{PodSelector: &pods, NamespaceSelector: &namespaces},
			networkingv1.NetworkPolicyPeer{IPBlock: &block}))
	}
	return all
}

func (g generator) ports() (all []networkingv1.NetworkPolicyPort) {
	for range g.IntN(3) {
		number, end := intstr.FromInt32(pick[int32](g, 53, 60, 80)), int32(80)
		name, protocol := intstr.FromString(pick(g, "web", "dns", "other")), pick(g, policy.Protocols()...)
		all = append(all, pick(g,
			networkingv1.NetworkPolicyPort{Port: &number},
			networkingv1.NetworkPolicyPort{Protocol: &protocol},
			networkingv1.NetworkPolicyPort{Port: &number, Protocol: &protocol},
			networkingv1.NetworkPolicyPort{Port: &name, Protocol: &protocol},
			networkingv1.NetworkPolicyPort{Port: &number, EndPort: &end, Protocol: &protocol}))
	}
	return all
}
