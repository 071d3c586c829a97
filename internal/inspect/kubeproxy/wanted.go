package kubeproxy

import (
	"net/netip"
	"slices"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
)

// Use is the use of a load balancer.
type Use string

// These are the uses, in the order in which kube-proxy programs them.
const (
	ClusterIP   Use = "clusterIP"
	NodePort    Use = "nodePort"
	ExternalIP  Use = "externalIP"
	IngressIP   Use = "ingressIP"
	HealthCheck Use = "healthCheck"
)

// wanted is a load balancer that a port of a Service needs on a node.
type wanted struct {
	*servicePort
	use  Use
	at   Front
	need []backend // empty: there must be no load balancer
	// either means that kube-proxy leaves the load balancer as it was: it may be there or not.
	either bool
	flags  flags
	// targets are the ports to which it may lead.
	targets []uint16
	// unready means that backends are used although none of the Service is ready.
	unready bool
	// rooted is the endpoint of a health check, in place of backends.
	rooted *hns.Endpoint
}

// flags are those of a load balancer and of its port mapping.
type flags struct{ DSR, IPv6, localRouted, mux, preserve, external, sticky bool }

// balancersOf returns the load balancers of a port (proxier.go, syncProxyRules).
func (n *node) balancersOf(p *servicePort) []wanted {
	ipv6 := p.vip.Is6()
	all, local, fall := n.backendsOf(p)
	pick := func(onlyLocal bool) []backend {
		if onlyLocal {
			return local
		}
		return all
	}
	var made []wanted
	add := func(use Use, vip netip.Addr, port uint16, need []backend, f flags) *wanted {
		f.IPv6, f.sticky = ipv6, p.sticky
		made = append(made, wanted{servicePort: p, use: use, at: Front{p.protocol, p.family, vip, port}, need: need, flags: f,
			targets: n.targets(p, all), unready: fall.nonServing && len(need) > 0})
		return &made[len(made)-1]
	}
	add(ClusterIP, p.vip, p.external, pick(p.internalLocal), flags{DSR: n.DSR})
	// Without a backend that is not terminating, load balancers of node ports and external addresses are neither made nor
	// changed; only a kube-proxy that cannot modify them deletes them.
	unavailable := fall.terminating || fall.nonServing
	if p.nodePort > 0 {
		add(NodePort, netip.Addr{}, p.nodePort, pick(p.preserve || p.externalLocal),
			flags{DSR: p.externalLocal, localRouted: true, external: true}).either = unavailable
	}
	for _, ip := range p.externalIPs {
		add(ExternalIP, ip, p.external, pick(p.externalLocal), flags{DSR: p.externalLocal, external: true}).either = unavailable
	}
	for _, ip := range p.ingressIPs {
		add(IngressIP, ip, p.external, pick(p.preserve || p.externalLocal),
			flags{DSR: p.preserve || p.externalLocal, mux: p.preserve, preserve: p.preserve, external: true})
	}
	if n.root != nil && len(all) > 0 {
		for _, ip := range p.ingressIPs {
			made = append(made, n.healthCheck(p, ip, unavailable))
		}
	}
	return made
}

// healthCheck returns the load balancer that leads a cloud's health checks to the node itself. It has no flag of IPv6, and
// no affinity.
func (n *node) healthCheck(p *servicePort, ip netip.Addr, either bool) wanted {
	port := n.HealthzPort
	if p.health != 0 {
		port = p.health
	}
	return wanted{servicePort: p, use: HealthCheck, at: Front{p.protocol, p.family, ip, port}, rooted: n.root, either: either,
		flags: flags{mux: p.preserve, preserve: p.preserve}, targets: []uint16{port}}
}

// fallback is how a Service with an ingress address treats backends that are not ready.
type fallback struct {
	terminating bool // all backends that count are terminating
	nonServing  bool // none that counts is serving: all addresses are used
}

// fallbackOf considers only local backends if the external traffic policy is Local. Only Services with ingress addresses
// fall back (proxier.go, isAllEndpointsTerminating and isAllEndpointsNonServing).
func (n *node) fallbackOf(p *servicePort) fallback {
	if len(p.ingressIPs) == 0 {
		return fallback{}
	}
	f := fallback{true, true}
	for _, b := range p.backends {
		if p.externalLocal && b.node != n.Node {
			continue
		}
		if b.serving {
			f.nonServing = false
		}
		if !b.terminating && b.ready {
			f.terminating = false
		}
	}
	return f
}

// backendsOf returns the backends of a port that are used on this node, and those of them that are on it. A backend of this
// node without an endpoint in HNS is left out by kube-proxy: a pod on the host network has none.
func (n *node) backendsOf(p *servicePort) (all, local []backend, fall fallback) {
	fall = n.fallbackOf(p)
	for _, b := range p.backends {
		here := b.node != "" && b.node == n.Node
		switch {
		case p.internalLocal && p.externalLocal && !here:
			continue
		case !fall.nonServing && (!fall.terminating && !b.ready || !b.serving):
			continue
		}
		e := n.resolve(b.address)
		if e == nil && here {
			continue
		}
		all = append(all, b)
		if e != nil && !e.Remote {
			local = append(local, b)
		}
	}
	return all, local, fall
}

// targets returns the ports to which load balancers of a port may lead. From 1.34 on it is the port of a backend, before
// that of the Service if it has a number.
func (n *node) targets(p *servicePort, all []backend) (ports []uint16) {
	for _, b := range all {
		if !slices.Contains(ports, b.port) {
			ports = append(ports, b.port)
		}
	}
	if p.target != 0 && (n.Version == "" || n.before("1.34.0")) && !slices.Contains(ports, p.target) {
		ports = append(ports, p.target)
	}
	return ports
}

// sourceVIPs returns the source addresses that a load balancer may have. On a network that is no overlay, kube-proxy sets
// none; then the result is nil.
func (n *node) sourceVIPs(w wanted) []netip.Addr {
	configured := parseAddr(n.SourceVIP)
	if !n.overlay || !configured.IsValid() || w.rooted != nil {
		return nil
	}
	all, _, _ := n.backendsOf(w.servicePort)
	for _, b := range all {
		if b.node == n.Node && b.node != "" {
			continue
		}
		if provider := n.provider(b.address); !provider.IsValid() || provider == b.address {
			if !n.NodeIP.IsValid() {
				return nil
			}
			return []netip.Addr{n.NodeIP}
		}
	}
	return []netip.Addr{configured}
}
