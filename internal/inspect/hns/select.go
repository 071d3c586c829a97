package hns

import (
	"net/netip"
	"slices"
	"strings"
)

// Filter selects objects of a State; the zero value selects all.
type Filter struct {
	Network string // name, ID or beginning of the ID of a network
	IP      netip.Addr
}

// Select returns the objects that match the filter's network and address, with all
// objects that are connected with them.
func (s State) Select(f Filter) State {
	if f.Network != "" {
		s = s.ofNetwork(f.Network)
	}
	if f.IP.IsValid() {
		s = s.withIP(f.IP)
	}
	return s
}

func (s State) ofNetwork(wanted string) State {
	s.Networks = keep(s.Networks, func(n Network) bool { return n.is(wanted) })
	s.Endpoints = keep(s.Endpoints, func(e Endpoint) bool {
		return slices.ContainsFunc(s.Networks, func(n Network) bool { return n.ID == e.Network })
	})
	return s.withoutUnrelated()
}

func (n Network) is(wanted string) bool {
	return strings.EqualFold(n.Name, wanted) || wanted != "" && strings.HasPrefix(n.ID, upper(wanted))
}

// withoutUnrelated removes the load balancers and namespaces that have none of the endpoints
// in s.
func (s State) withoutUnrelated() State {
	kept := func(ids []string) bool {
		return slices.ContainsFunc(ids, func(id string) bool { _, ok := s.Endpoint(id); return ok })
	}
	s.LoadBalancers = keep(s.LoadBalancers, func(l LoadBalancer) bool { return kept(l.Endpoints) })
	s.Namespaces = keep(s.Namespaces, func(n Namespace) bool { return kept(n.Endpoints) })
	return s
}

// withIP keeps the objects that are related to an address: the endpoints with this address, the
// load balancers with this address and their endpoints, and the namespaces and networks of all
// these endpoints. If no load balancer has the address, withIP keeps the load balancers of the
// endpoints instead. It also keeps networks with a subnet that contains the address.
func (s State) withIP(ip netip.Addr) State {
	is := func(text string) bool { a, err := netip.ParseAddr(text); return err == nil && a == ip }
	balancers := keep(s.LoadBalancers, func(l LoadBalancer) bool {
		return slices.ContainsFunc(l.VIPs, is)
	})
	s.Endpoints = keep(s.Endpoints, func(e Endpoint) bool {
		return slices.ContainsFunc(e.Addresses, func(a Address) bool { return is(a.IP) }) ||
			slices.ContainsFunc(balancers, func(l LoadBalancer) bool { return slices.Contains(l.Endpoints, e.ID) })
	})
	s.LoadBalancers = keep(s.LoadBalancers, func(l LoadBalancer) bool {
		return slices.ContainsFunc(balancers, func(b LoadBalancer) bool { return b.ID == l.ID }) ||
			len(balancers) == 0 &&
				slices.ContainsFunc(s.Endpoints, func(e Endpoint) bool { return slices.Contains(l.Endpoints, e.ID) })
	})
	s.Networks = keep(s.Networks, func(n Network) bool {
		return slices.ContainsFunc(s.Endpoints, func(e Endpoint) bool { return e.Network == n.ID }) ||
			slices.ContainsFunc(n.Subnets, func(sub Subnet) bool { return sub.contains(ip) })
	})
	s.Namespaces = keep(s.Namespaces, func(n Namespace) bool {
		return slices.ContainsFunc(s.Endpoints, func(e Endpoint) bool { return slices.Contains(n.Endpoints, e.ID) })
	})
	return s
}

func (s Subnet) contains(ip netip.Addr) bool {
	prefix, err := netip.ParsePrefix(s.Prefix)
	return err == nil && prefix.Contains(ip)
}

// keep returns a new list of the wanted elements, which is never nil.
func keep[T any](all []T, wanted func(T) bool) []T {
	kept := []T{}
	for _, one := range all {
		if wanted(one) {
			kept = append(kept, one)
		}
	}
	return kept
}
