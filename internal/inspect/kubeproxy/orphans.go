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
			l.add(f)
			continue
		}
		at, ok := FrontOf(*b)
		if !ok || !l.made(b) {
			f := newFinding(Foreign, finding.Info, "a load balancer was not made by kube-proxy").of(loadBalancer, b.ID)
			f.Evidence = shown(strings.Join(b.VIPs, ", "))
			f.Remedy = "kube-proxy removes it when it starts; run the program that made it on another node, or find out which it is"
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

// made reports whether kube-proxy can have made a load balancer: all its endpoints are of kube-proxy's network or gone, and
// its protocol and flags are such as kube-proxy uses.
func (l *comparison) made(b *hns.LoadBalancer) bool {
	p := b.Ports[0]
	if p.Internally || !slices.Contains([]string{"tcp", "udp", "sctp"}, p.Protocol) {
		return false
	}
	return !slices.ContainsFunc(b.Endpoints, func(id string) bool {
		e, exists := l.endpoints[id]
		return exists && e.Network != l.network
	})
}
