package kubeproxy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

// balancers compares the load balancers of all Services, and returns how many each needs, by NAMESPACE/NAME.
func (l *comparison) balancers() map[string]int {
	count := map[string]int{}
	claims := map[Front][]wanted{}
	var order []Front
	for _, p := range l.ports {
		if !l.programs(p.family) {
			continue
		}
		l.mixed(p)
		for _, w := range l.balancersOf(p) {
			if len(claims[w.at]) == 0 {
				order = append(order, w.at)
			}
			claims[w.at] = append(claims[w.at], w)
		}
	}
	for _, at := range order {
		w, ok := l.claim(at, claims[at])
		if !ok {
			continue
		}
		if !w.either && (len(w.need) > 0 || w.rooted != nil) {
			count[w.service.String()]++
		}
		l.compare(w)
	}
	return count
}

// claim returns the load balancer that is wanted at a front end. If two Services claim it for different load balancers, HNS
// can only have that of one, and which of them is chance: claim reports it and returns false. Two Services with one ingress
// address claim the same load balancer for its health checks. The same Service may claim a front end twice, such as by an
// external address that is also an ingress address: kube-proxy then makes the first one only.
func (l *comparison) claim(at Front, all []wanted) (wanted, bool) {
	var need []wanted
	for _, w := range all {
		if len(w.need) > 0 || w.rooted != nil || w.either {
			need = append(need, w)
		}
	}
	if len(need) == 0 {
		return all[0], true
	}
	services := []string{}
	for _, w := range need {
		if name := w.service.String(); !slices.Contains(services, name) {
			services = append(services, name)
		}
	}
	differs := slices.ContainsFunc(need, func(w wanted) bool { return !w.equals(need[0]) })
	if len(services) == 1 || !differs {
		return need[0], true
	}
	for _, b := range l.fronts[at] {
		l.seen[b.ID] = true
	}
	f := newFinding(Conflict, finding.Error, "%s is claimed by the Services %s, and HNS takes one load balancer for it", at,
		some(services[:min(len(services), maxListed)], len(services))).about(need[0])
	f.Evidence = fmt.Sprintf("HNS has %s", plural(len(l.fronts[at]), "load balancer"))
	f.Affected = need[0].affected(l.node) + "; they reach the Service that kube-proxy programmed first"
	f.Remedy = "give one of the Services another address, port or node port"
	l.add(f)
	return wanted{}, false
}

// equals reports whether one load balancer in HNS is right for both.
func (w wanted) equals(other wanted) bool {
	return w.rooted == other.rooted && w.either == other.either && w.flags == other.flags &&
		slices.Equal(w.need, other.need) && slices.Equal(w.targets, other.targets)
}

// mixed reports backends with different ports: a load balancer of HNS has one port for all.
func (l *comparison) mixed(p *servicePort) {
	all, _, fall := l.backendsOf(p)
	var ports []string
	for _, b := range all {
		if text := fmt.Sprint(b.port); !slices.Contains(ports, text) && len(ports) < maxListed {
			ports = append(ports, text)
		}
	}
	if len(ports) > 1 {
		f := newFinding(MixedPorts, finding.Warning,
			"the backends of port %d of Service %s have the ports %s, and HNS leads all connections to one of them", p.external,
			p.service, strings.Join(ports, ", ")).about(wanted{servicePort: p, use: ClusterIP, at: Front{p.protocol, p.family, p.vip, p.external}})
		f.Affected = "clients on this node whose connection goes to a backend with another port"
		f.Remedy = "give all pods of the Service the same port for this target port"
		l.add(f)
	}
	if fall.nonServing && len(p.ingressIPs) > 0 && p.externalLocal && slices.ContainsFunc(all, func(b backend) bool { return b.node != l.Node }) {
		f := newFinding(Unready, finding.Warning, "no backend of Service %s on this node serves, so kube-proxy uses all pods of the "+
			"Service for its cluster IP, ready or not", p.service).about(wanted{servicePort: p, use: ClusterIP, at: Front{p.protocol, p.family, p.vip, p.external}})
		f.Affected = "clients on this node, whose connections may go to pods that are not ready"
		f.Remedy = "set externalTrafficPolicy to Cluster, or run a pod of the Service on this node"
		l.add(f)
	}
}

// compare compares the load balancers at a front end with the wanted one.
func (l *comparison) compare(w wanted) {
	held := l.fronts[w.at]
	for _, b := range held {
		l.seen[b.ID] = true
	}
	none := len(w.need) == 0 && w.rooted == nil
	switch {
	case w.either && (none || len(held) == 0):
		return
	case none && len(held) == 0:
		return
	case none:
		for _, b := range held {
			l.add(l.noBackend(w, b))
		}
		return
	case len(held) == 0:
		l.add(l.missing(w))
		return
	}
	best, difference := l.best(w, held)
	for _, b := range held {
		if b != best {
			l.add(l.doubled(w, b, best))
		}
	}
	if w.either {
		return
	}
	l.judge(w, best, difference)
}

// best returns the load balancer that differs least from the wanted one.
func (l *comparison) best(w wanted, held []*hns.LoadBalancer) (best *hns.LoadBalancer, least difference) {
	for _, b := range held {
		d := l.differs(w, b)
		if best == nil || d.size() < least.size() || d.size() == least.size() && b.ID < best.ID {
			best, least = b, d
		}
	}
	return best, least
}

// difference is that between the backends of a load balancer and the wanted ones.
type difference struct {
	lacks, extra []netip.Addr
	dead         []string // IDs
	target       bool     // it leads to another port
	flags        []string // in words
}

func (d difference) size() int {
	size := 4*(len(d.lacks)+len(d.extra)+len(d.dead)) + len(d.flags)
	if d.target {
		size += 2
	}
	return size
}

func (l *comparison) differs(w wanted, b *hns.LoadBalancer) (d difference) {
	need := make(map[netip.Addr]bool, len(w.need))
	for _, backend := range w.need {
		need[backend.address] = false
	}
	for _, id := range b.Endpoints {
		e, exists := l.endpoints[id]
		switch {
		case !exists:
			d.dead = append(d.dead, shown(id))
			continue
		case w.rooted != nil && e.ID == w.rooted.ID:
			continue
		}
		if a, ok := neededOf(e, need); ok {
			need[a] = true
		} else {
			d.extra = append(d.extra, parseAddr(e.IP()))
		}
	}
	for a, has := range need {
		if !has {
			d.lacks = append(d.lacks, a)
		}
	}
	if w.rooted != nil && !slices.Contains(b.Endpoints, w.rooted.ID) {
		d.lacks = append(d.lacks, parseAddr(w.rooted.IP()))
	}
	slices.SortFunc(d.lacks, netip.Addr.Compare)
	slices.SortFunc(d.extra, netip.Addr.Compare)
	slices.Sort(d.dead)
	d.target = !slices.Contains(w.targets, b.Ports[0].Internal)
	d.flags = flagsOf(*b).differences(w.flags)
	return d
}

// neededOf returns the address of an endpoint that is a wanted backend.
func neededOf(e *hns.Endpoint, need map[netip.Addr]bool) (netip.Addr, bool) {
	for _, text := range e.Addresses[:min(2, len(e.Addresses))] {
		a := parseAddr(text.IP)
		if _, ok := need[a]; ok {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func flagsOf(b hns.LoadBalancer) flags {
	p := b.Ports[0]
	return flags{DSR: b.DSR, IPv6: b.IPv6, localRouted: p.LocalRouted, mux: p.UseMux, preserve: p.PreserveDIP, external: p.ExternalVIP,
		sticky: p.Sticky}
}

// differences names the flags that differ from the wanted ones, such as "DSR is off".
func (f flags) differences(want flags) (all []string) {
	for _, one := range []struct {
		name     string
		is, want bool
	}{
		{"DSR", f.DSR, want.DSR}, {"IPv6", f.IPv6, want.IPv6}, {"local routed VIP", f.localRouted, want.localRouted},
		{"mux", f.mux, want.mux}, {"preserve destination", f.preserve, want.preserve}, {"external VIP", f.external, want.external},
		{"session affinity", f.sticky, want.sticky},
	} {
		if one.is != one.want {
			all = append(all, one.name+" is "+map[bool]string{true: "on", false: "off"}[one.is])
		}
	}
	return all
}

// judge reports the differences of the one load balancer of a Service.
func (l *comparison) judge(w wanted, b *hns.LoadBalancer, d difference) {
	if len(d.lacks)+len(d.extra)+len(d.dead) > 0 {
		l.add(l.backendsFinding(w, b, d))
	}
	if d.target && len(w.targets) > 0 {
		f := newFinding(Target, finding.Error, "the load balancer leads to port %d, and the backends listen on %s",
			b.Ports[0].Internal, joined(w.targets)).about(w).of(loadBalancer, b.ID)
		f.Affected, f.Remedy = w.affected(l.node), removeAndTouch
		l.add(f)
	}
	if len(d.flags) > 0 {
		f := newFinding(Flags, finding.Error, "the load balancer has other flags than kube-proxy sets: %s",
			strings.Join(d.flags, ", ")).about(w).of(loadBalancer, b.ID)
		f.Affected, f.Remedy = w.affected(l.node), removeAndTouch
		f.Evidence = "kube-proxy compares no flags, so it keeps the load balancer"
		l.add(f)
	}
	if may := l.sourceVIPs(w); may != nil && !slices.Contains(may, parseAddr(b.SourceVIP)) {
		f := newFinding(SourceVIP, finding.Error, "the load balancer has the source address %s, and should have %s",
			shown(orNone(b.SourceVIP)), may[0]).about(w).of(loadBalancer, b.ID)
		f.Affected, f.Remedy = "clients on this node that connect to backends on other nodes", removeAndTouch
		l.add(f)
	}
}

// These are remedies. kube-proxy programs a Service again if a setting of it changes, and looks at a load balancer that it
// has made never again.
const (
	touch = "`swdt network services --fix` has kube-proxy program the Service again, on all Windows nodes; if that does not help, " +
		"restart kube-proxy, which removes all load balancers of the node for seconds to minutes"
	removeAndTouch = "`swdt network services --fix` removes the load balancer and has kube-proxy program the Service again, on all Windows nodes"
	removeOnly     = "`swdt network services --fix` removes it"
)

func (l *comparison) missing(w wanted) Finding {
	f := newFinding(Missing, finding.Error, "HNS has no load balancer for it, and the Service has %s",
		plural(max(len(w.need), 1), "backend")).about(w)
	addresses := addressesOf(w.need)
	f.Lacks, f.LacksCount = listed(addresses), len(addresses)
	f.Evidence = "backends: " + some(f.Lacks, f.LacksCount)
	f.Affected, f.Remedy = w.affected(l.node), touch
	return f
}

func (l *comparison) noBackend(w wanted, b *hns.LoadBalancer) Finding {
	f := newFinding(Stale, finding.Error, "the Service has no backend for it, and HNS still has the load balancer").about(w).
		of(loadBalancer, b.ID)
	d := l.differs(w, b)
	f = f.withBackends(d)
	f.Evidence = l.goesTo(d)
	f.Affected, f.Remedy = w.affected(l.node)+", which are led to pods that are not the Service's", removeAndTouch
	return f
}

func (l *comparison) doubled(w wanted, b, best *hns.LoadBalancer) Finding {
	f := newFinding(Doubled, finding.Error, "HNS has another load balancer for it, %s", shown(best.ID)).about(w).of(loadBalancer, b.ID)
	d := l.differs(w, b)
	f = f.withBackends(d)
	f.Evidence = l.goesTo(d)
	f.Affected = w.affected(l.node) + ", which reach either of them"
	f.Remedy = removeAndTouch
	return f
}

func (l *comparison) backendsFinding(w wanted, b *hns.LoadBalancer, d difference) Finding {
	var parts []string
	add := func(count int, format, noun string) {
		if count > 0 {
			parts = append(parts, fmt.Sprintf(format, plural(count, noun)))
		}
	}
	add(len(d.lacks), "lacks %s", "backend")
	add(len(d.extra), "has %s of others", "backend")
	add(len(d.dead), "names %s that does not exist", "endpoint")
	f := newFinding(Backends, finding.Error, "the load balancer %s", strings.Join(parts, ", ")).about(w).of(loadBalancer, b.ID).withBackends(d)
	f.Evidence = l.goesTo(d)
	f.Affected, f.Remedy = w.affected(l.node), touch
	return f
}

func (f Finding) withBackends(d difference) Finding {
	f.Lacks, f.LacksCount = listed(d.lacks), len(d.lacks)
	f.Extra, f.ExtraCount = listed(d.extra), len(d.extra)
	f.Dead, f.DeadCount = d.dead[:min(len(d.dead), maxListed)], len(d.dead)
	if f.Dead == nil {
		f.Dead = []string{}
	}
	return f
}

// goesTo describes the wrong backends, with the pods that have their addresses now.
func (l *comparison) goesTo(d difference) string {
	var parts []string
	if len(d.lacks) > 0 {
		parts = append(parts, "lacks "+some(listed(d.lacks), len(d.lacks)))
	}
	if len(d.extra) > 0 {
		var owners []string
		for _, a := range d.extra[:min(len(d.extra), maxListed)] {
			owners = append(owners, a.String()+" ("+l.ownerOf(a)+")")
		}
		parts = append(parts, "has "+some(owners, len(d.extra)))
	}
	if len(d.dead) > 0 {
		parts = append(parts, "names the endpoints "+some(d.dead[:min(len(d.dead), maxListed)], len(d.dead)))
	}
	return strings.Join(parts, "; ")
}

// ownerOf returns the pod that has an address now.
func (c *Cluster) ownerOf(a netip.Addr) string {
	switch pods := c.pods[a]; {
	case len(pods) > 0:
		return "now of pod " + pods[0].name
	case c.hostPods[a]:
		return "of a node"
	case !c.hasPods:
		return "of an unknown owner"
	}
	return "no pod has it"
}

func addressesOf(all []backend) (addresses []netip.Addr) {
	for _, b := range all {
		addresses = append(addresses, b.address)
	}
	return addresses
}

func plural(count int, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

func joined(ports []uint16) string {
	var texts []string
	for _, p := range ports {
		texts = append(texts, fmt.Sprint(p))
	}
	return strings.Join(texts, ", ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
