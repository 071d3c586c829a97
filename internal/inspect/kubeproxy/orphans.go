package kubeproxy

import (
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// orphans reports the load balancers that no Service explains.
func (l *comparison) orphans() {
	for i := range l.node.balancers {
		b := &l.node.balancers[i]
		switch {
		case l.seen[b.ID]:
			continue
		case len(b.Ports) == 0:
			f := newFinding(NoPorts, finding.Error, "a load balancer has no port").of(loadBalancer, b.ID)
			f.Affected = "all clients on this node, if kube-proxy ends each time that it lists the load balancers"
			f.Remedy = removeOnly
			if f.mustStay = !l.onNetwork(b); f.mustStay {
				f.Remedy = "find the program that made it, and have it remove the load balancer: its endpoints are of another network"
			}
			l.add(f)
			continue
		}
		at, ok := FrontOf(*b)
		if !ok || !l.made(b) {
			f := newFinding(Foreign, finding.Info, "nothing shows that kube-proxy made a load balancer of no Service").of(loadBalancer, b.ID)
			f.Evidence = shown(strings.Join(b.VIPs, ", "))
			f.Remedy = "`swdt network services --fix` leaves it; kube-proxy removes it when it starts: find the program that made it, and run it on " +
				"another node"
			l.add(f)
			continue
		}
		if !l.programs(at.Family) {
			continue
		}
		f := newFinding(Stale, finding.Error, "no Service has this address and port, and HNS has a load balancer for it").of(loadBalancer, b.ID)
		f.At = at.String()
		d := l.differs(wanted{servicePort: &servicePort{}}, b)
		f = f.withBackends(d)
		f.Evidence = l.goesTo(d)
		f.Affected = "clients on this node that connect to " + at.String()
		if !at.VIP.IsValid() {
			f.Affected = "programs on this node that need the port, and Services that get it as their node port"
		}
		f.Remedy = removeOnly + "; if kube-proxy fails to make another one afterwards, restart kube-proxy"
		l.add(f)
	}
}

// made reports whether an object shows that kube-proxy made a load balancer: a remote endpoint of kube-proxy's among its
// endpoints, an endpoint that is gone, or the flags of a node port. Other programs also make load balancers on kube-proxy's
// network, so that its endpoints are of this network is not enough.
func (l *comparison) made(b *hns.LoadBalancer) bool {
	p := b.Ports[0]
	if p.Internally || !slices.Contains([]string{"tcp", "udp", "sctp"}, p.Protocol) || !l.onNetwork(b) {
		return false
	}
	if len(b.VIPs) == 0 && p.LocalRouted && p.ExternalVIP && len(b.Endpoints) > 0 {
		return true
	}
	return slices.ContainsFunc(b.Endpoints, func(id string) bool {
		e, exists := l.endpoints[id]
		return !exists || slices.ContainsFunc(e.Addresses, func(a hns.Address) bool { return ofProxy(*e, parseAddr(a.IP)) })
	})
}

// onNetwork reports whether all endpoints of a load balancer are of kube-proxy's network, or gone.
func (l *comparison) onNetwork(b *hns.LoadBalancer) bool {
	return !slices.ContainsFunc(b.Endpoints, func(id string) bool {
		e, exists := l.endpoints[id]
		return exists && e.Network != l.network
	})
}
