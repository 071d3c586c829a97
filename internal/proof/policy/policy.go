package policy

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Pod is one end of a connection.
type Pod struct {
	Namespace       string
	Name            string
	Labels          map[string]string
	NamespaceLabels map[string]string
	Address         netip.Addr // invalid: no ipBlock matches the pod
	Ports           []Port     // the container ports, for policies with named ports
	Node            string     // "" if it is not known
	// Host reports whether the pod uses the network of its node, so that it stands for the node.
	Host bool
}

// Port is a named container port.
type Port struct {
	Name     string
	Number   int32
	Protocol corev1.Protocol
}

// Connection is a connection to a port of a pod.
type Connection struct {
	From, To Pod
	Port     int32
	Protocol corev1.Protocol
}

// Verdict says whether a connection passes, and why.
type Verdict struct {
	Egress  Side // of the source
	Ingress Side // of the target
}

// Allowed reports whether the connection passes.
func (v Verdict) Allowed() bool { return v.Egress.Allowed && v.Ingress.Allowed }

// Undefined reports whether the meaning of policies is undefined for the connection, and a pod network may let it
// pass or not.
func (v Verdict) Undefined() bool {
	denied := func(s Side) bool { return !s.Allowed && !s.Undefined }
	return (v.Egress.Undefined || v.Ingress.Undefined) && !denied(v.Egress) && !denied(v.Ingress)
}

// Side is the verdict of one side of a connection.
type Side struct {
	Allowed bool
	// Undefined reports whether policies select the pod, but do not define what they mean for traffic from or to
	// a node. Allowed is then false.
	Undefined bool
	// Policies are the names, as NAMESPACE/NAME, of the policies that decide: those that allow the
	// connection or, if it is denied, those that select the pod. None: no policy selects the pod.
	Policies []string
}

// Set is a set of valid policies.
type Set struct{ ingress, egress []compiled }

// compiled is one direction of a policy.
type compiled struct {
	namespace, name string
	pods            labels.Selector
	rules           []rule
}

// rule allows connections with one of the peers, to one of the ports.
type rule struct {
	peers []peer // none: all
	ports []ports
}

// peer selects the other end of a connection: by its address, or by its labels.
type peer struct {
	block      *block
	namespace  string          // the peer's namespace, if namespaces is nil
	namespaces labels.Selector // nil: the namespace of the policy
	pods       labels.Selector
}

// block is a range of addresses without some parts of it.
type block struct {
	in  netip.Prefix
	not []netip.Prefix
}

// ports are ports of one protocol: all of them, those from first to last, or those with a name.
type ports struct {
	protocol    corev1.Protocol
	all         bool
	first, last int32
	name        string
}

// Decide returns the verdict on a connection.
func (s *Set) Decide(c Connection) Verdict {
	if c.From.Namespace == c.To.Namespace && c.From.Name == c.To.Name {
		return Verdict{Side{Allowed: true}, Side{Allowed: true}}
	}
	return Verdict{
		Egress:  decide(s.egress, c.From, c.To, c),
		Ingress: decide(s.ingress, c.To, c.From, c),
	}
}

// decide returns the verdict of the policies on the side of the pod own; other is the other end.
//
// Kubernetes defines that a pod always exchanges traffic with its own node. It leaves open whether policies select
// pods that use the network of their node, and whether they match other nodes by their addresses.
func decide(all []compiled, own, other Pod, c Connection) Side {
	if own.Host != other.Host && own.Node != "" && own.Node == other.Node {
		return Side{Allowed: true}
	}
	var selecting, allowing []string
	for _, p := range all {
		if p.namespace != own.Namespace || !p.pods.Matches(labels.Set(own.Labels)) {
			continue
		}
		name := p.namespace + "/" + p.name
		selecting = append(selecting, name)
		if slices.ContainsFunc(p.rules, func(r rule) bool { return r.allows(other, c) }) {
			allowing = append(allowing, name)
		}
	}
	if len(selecting) > 0 && (own.Host || other.Host) {
		return Side{Undefined: true, Policies: selecting}
	}
	if len(allowing) > 0 || len(selecting) == 0 {
		return Side{Allowed: true, Policies: allowing}
	}
	return Side{Policies: selecting}
}

func (r rule) allows(other Pod, c Connection) bool {
	return (len(r.peers) == 0 || slices.ContainsFunc(r.peers, func(p peer) bool { return p.matches(other) })) &&
		(len(r.ports) == 0 || slices.ContainsFunc(r.ports, func(p ports) bool { return p.match(c) }))
}

func (p peer) matches(other Pod) bool {
	switch {
	case p.block != nil:
		return p.block.contains(other.Address)
	case p.namespaces == nil && p.namespace != other.Namespace:
		return false
	case p.namespaces != nil && !p.namespaces.Matches(labels.Set(other.NamespaceLabels)):
		return false
	}
	return p.pods.Matches(labels.Set(other.Labels))
}

func (b block) contains(a netip.Addr) bool {
	a = a.Unmap()
	return b.in.Contains(a) && !slices.ContainsFunc(b.not, func(not netip.Prefix) bool { return not.Contains(a) })
}

// match reports whether the connection goes to one of these ports. A name is that of a container port of
// the target, for both directions.
func (p ports) match(c Connection) bool {
	switch {
	case p.protocol != c.Protocol:
		return false
	case p.all:
		return true
	case p.name == "":
		return p.first <= c.Port && c.Port <= p.last
	}
	return slices.Contains(c.To.Ports, Port{Name: p.name, Number: c.Port, Protocol: c.Protocol})
}
