package hns

import (
	"net/netip"
	"slices"
	"strings"
)

// Filter chooses a part of a State; the zero value chooses all.
type Filter struct {
	Network string // name, ID or the beginning of one
	IP      netip.Addr
}

// Select is the part that a filter is about: of its network, and what has its
// address, with all that hangs together with it.
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
	return s.around()
}

func (n Network) is(wanted string) bool {
	return strings.EqualFold(n.Name, wanted) || wanted != "" && strings.HasPrefix(n.ID, upper(wanted))
}

// around keeps of load balancers and namespaces those of the endpoints.
func (s State) around() State {
	kept := func(ids []string) bool {
		return slices.ContainsFunc(ids, func(id string) bool { _, ok := s.Endpoint(id); return ok })
	}
	s.LoadBalancers = keep(s.LoadBalancers, func(l LoadBalancer) bool { return kept(l.Endpoints) })
	s.Namespaces = keep(s.Namespaces, func(n Namespace) bool { return kept(n.Endpoints) })
	return s
}

// withIP keeps what has an address: its endpoints with their load balancers, the
// load balancers that it is the address of with their endpoints, and the networks
// that it is in.
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
			len(balancers) == 0 && slices.ContainsFunc(s.Endpoints, func(e Endpoint) bool { return slices.Contains(l.Endpoints, e.ID) })
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

// keep gives a list of its own, which is not nil.
func keep[T any](all []T, wanted func(T) bool) []T {
	kept := []T{}
	for _, one := range all {
		if wanted(one) {
			kept = append(kept, one)
		}
	}
	return kept
}
