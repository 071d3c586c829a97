package kubeproxy

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// remotes compares the remote endpoints of kube-proxy's network with the addresses of the cluster.
func (l *comparison) remotes() {
	for a, all := range l.at {
		var local, remote []*hns.Endpoint
		for _, e := range all {
			if e.Remote {
				remote = append(remote, e)
			} else {
				local = append(local, e)
			}
		}
		switch {
		case len(remote) == 0:
			continue
		case len(local) > 0:
			for _, e := range remote {
				l.add(l.twin(a, e, local[0]))
			}
			continue
		case len(remote) > 1:
			l.twice(a, remote)
		}
		l.remote(a, remote)
	}
}

func (l *comparison) twin(a netip.Addr, e, local *hns.Endpoint) Finding {
	f := newFinding(RemoteTwin, finding.Error, "a remote endpoint has the address %s of an endpoint of this node", a).of(endpoint, e.ID)
	f.At, f.Evidence = a.String(), fmt.Sprintf("%s; the endpoint of this node is %s", l.ownerOf(a), shown(local.ID))
	f.Affected = fmt.Sprintf("clients of the pod with the address %s: connections time out now and then", a)
	f.Remedy = "remove the remote endpoint; a kube-proxy with the repair does it itself"
	return f
}

// twice reports remote endpoints with the same address, but for the one that load balancers name.
func (l *comparison) twice(a netip.Addr, remote []*hns.Endpoint) {
	keep := remote[0]
	if i := slices.IndexFunc(remote, func(e *hns.Endpoint) bool { return l.used[e.ID] }); i >= 0 {
		keep = remote[i]
	}
	for _, e := range remote {
		if e == keep {
			continue
		}
		f := newFinding(Doubled, finding.Warning, "two remote endpoints have the address %s", a).of(endpoint, e.ID)
		f.At, f.Evidence = a.String(), "the other one is "+shown(keep.ID)
		f.Affected, f.Remedy = "clients of the pod with this address", "remove this endpoint if no load balancer names it"
		l.add(f)
	}
}

// remote reports an endpoint that no Service uses, or one that leads to another node than the one with the address.
func (l *comparison) remote(a netip.Addr, remote []*hns.Endpoint) {
	e := remote[0]
	switch {
	case ofProxy(*e, a) && !l.named[a]:
		for _, e := range remote {
			if !l.used[e.ID] {
				l.add(l.stale(a, e))
			}
		}
	case l.overlay && !ofProxy(*e, a) && !l.clusterIPs[a] && !l.named[a] && l.NodeIP.IsValid() && providerOf(*e) == l.NodeIP &&
		!l.used[e.ID] && a.String() != l.SourceVIP && len(l.pods[a]) == 0:
		f := newFinding(StaleRemote, finding.Warning, "the remote endpoint of a cluster IP remains, and no Service has the address %s", a).
			of(endpoint, e.ID)
		f.At, f.Affected = a.String(), "a later Service that gets this cluster IP"
		f.Remedy = removeOnly
		l.add(f)
	case l.overlay && ofProxy(*e, a) && l.named[a] && l.NodeIP.IsValid():
		is, want := providerOf(*e), l.provider(a)
		if !want.IsValid() {
			want = l.NodeIP
		}
		if is.IsValid() && is != want {
			f := newFinding(Provider, finding.Error, "the remote endpoint %s leads to the node %s, and the address is on %s", a, is, want).
				of(endpoint, e.ID)
			f.At, f.Affected = a.String(), "clients on this node that connect to "+a.String()+" by a Service"
			f.Remedy = "delete the pod with the address, or restart kube-proxy after the endpoint was removed"
			l.add(f)
		}
	}
}

func (l *comparison) stale(a netip.Addr, e *hns.Endpoint) Finding {
	f := newFinding(StaleRemote, finding.Warning, "a remote endpoint remains, and no Service uses the address %s", a).of(endpoint, e.ID)
	f.At, f.Evidence = a.String(), l.ownerOf(a)
	f.Affected = "a later pod with this address, if it runs on this node"
	if pods := l.pods[a]; len(pods) > 0 {
		if pods[0].node == l.Node {
			f.Severity = finding.Error
			f.Affected = fmt.Sprintf("pod %s, which has the address now and runs on this node", pods[0].name)
		} else {
			f.Affected = fmt.Sprintf("clients on this node of pod %s, which has the address now", pods[0].name)
		}
	}
	f.Remedy = removeOnly + "; kube-proxy does not, since it removes only addresses that left a Service while it ran"
	return f
}

// lostPods reports the backends on this node that have no endpoint of their own. Pods on the host network have none.
func (l *comparison) lostPods() {
	if !l.hasPods {
		return
	}
	done := map[netip.Addr]bool{}
	for _, p := range l.ports {
		for _, b := range p.backends {
			if b.node == "" || b.node != l.Node || !b.ready || done[b.address] {
				continue
			}
			done[b.address] = true
			pods := l.pods[b.address]
			here := slices.IndexFunc(pods, func(p pod) bool { return p.node == l.Node })
			if e := l.resolve(b.address); here < 0 || e != nil && !e.Remote {
				continue
			}
			f := newFinding(LostPod, finding.Error, "pod %s runs on this node and has no endpoint in HNS", pods[here].name).of(endpoint, "")
			f.Service, f.At = p.service.String(), b.address.String()
			f.Affected = "clients of the pod; the Services lead no connection to it on this node"
			f.Remedy = "delete the pod, so that it is created again"
			l.add(f)
		}
	}
}
