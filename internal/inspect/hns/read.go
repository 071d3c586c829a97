package hns

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/maruel/natural"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// Read reads all objects of a node's Host Network Service. If the node has no such
// service, the error is fault.ErrNotSupported.
func Read(ctx context.Context, compute agentv1.ComputeClient) (State, error) {
	return read(ctx, compute, platform.HNSNetworks, platform.HNSEndpoints, platform.HNSLoadBalancers,
		platform.HNSNamespaces)
}

// ReadLoadBalancers is like Read, and reads only the load balancers.
func ReadLoadBalancers(ctx context.Context, compute agentv1.ComputeClient) ([]LoadBalancer, error) {
	state, err := read(ctx, compute, platform.HNSLoadBalancers)
	return state.LoadBalancers, err
}

// ReadEndpoints is like Read, and reads only the endpoints.
func ReadEndpoints(ctx context.Context, compute agentv1.ComputeClient) ([]Endpoint, error) {
	state, err := read(ctx, compute, platform.HNSEndpoints)
	return state.Endpoints, err
}

// read reads the objects of these kinds.
func read(ctx context.Context, compute agentv1.ComputeClient, kinds ...platform.NetworkKind) (State, error) {
	documents := map[platform.NetworkKind][][]byte{}
	for _, kind := range kinds {
		reply, err := compute.Objects(ctx, &agentv1.ComputeRequest{Kind: word.Value[agentv1.ComputeKind](string(kind))})
		if err != nil {
			return State{}, err // the error names the attempted operation
		}
		for _, object := range reply.GetObjects() {
			documents[kind] = append(documents[kind], object.GetDocument())
		}
	}
	return Parse(documents), nil
}

// Parse reads the service's documents of schema 2. An object with a field that cannot be read is in its list without
// that field, and in Unreadable.
func Parse(documents map[platform.NetworkKind][][]byte) State {
	var s State
	s.Networks = parse(&s, documents, platform.HNSNetworks, network)
	s.Endpoints = parse(&s, documents, platform.HNSEndpoints, endpoint)
	s.LoadBalancers = parse(&s, documents, platform.HNSLoadBalancers, loadBalancer)
	s.Namespaces = parse(&s, documents, platform.HNSNamespaces, namespace)
	s.sort()
	return s
}

// parse reads the documents of a kind; W is the form in which the service writes them.
func parse[W, T any](s *State, documents map[platform.NetworkKind][][]byte, kind platform.NetworkKind,
	from func(W, json.RawMessage) T) []T {
	all := []T{}
	for _, document := range documents[kind] {
		var wire W
		ok, err := lenient(document, &wire)
		if err != nil {
			s.Unreadable = append(s.Unreadable, Unreadable{Kind: kind, ID: idOf(document), Error: err.Error(),
				Raw: rawOf(document)})
		}
		if ok {
			all = append(all, from(wire, rawOf(document)))
		}
	}
	return all
}

// These types are the parts of HNS's own documents that are read. encoding/json ignores the case of
// names.
type (
	wireRoute  struct{ NextHop, DestinationPrefix string }
	wireSubnet struct {
		IPAddressPrefix string `json:"IpAddressPrefix"`
		Policies        []Policy
		Routes          []wireRoute
	}
	wireNetwork struct {
		ID, Name string
		Type     *string
		Policies []Policy
		Ipams    []struct{ Subnets []wireSubnet }
	}
	wireEndpoint struct {
		ID, Name, MacAddress                     string
		HostComputeNetwork, HostComputeNamespace string
		Policies                                 []Policy
		IPConfigurations                         []struct {
			IPAddress    string `json:"IpAddress"`
			PrefixLength int
		} `json:"IpConfigurations"`
		Routes []wireRoute
		Flags  uint32
	}
	wireLoadBalancer struct {
		ID, SourceVIP                      string
		FrontendVIPs, HostComputeEndpoints []string
		PortMappings                       []struct {
			Protocol, Flags            uint32
			InternalPort, ExternalPort uint16
			DistributionType           uint32
		}
		Flags uint32
	}
	wireNamespace struct {
		ID, Type    string
		NamespaceID uint32 `json:"NamespaceId"`
		Resources   []struct {
			Type string
			Data struct{ ID string }
		}
	}
)

const (
	endpointRemote  = 1 // a flag of an endpoint
	balancerDSR     = 1 // a flag of a load balancer
	balancerIPv6    = 2 // a flag of a load balancer; kube-proxy defines it itself: pkg/proxy/winkernel/hns.go
	portInternal    = 1 // a flag of a port mapping
	portLocalRouted = 2 // a flag of a port mapping
	portUseMux      = 4 // a flag of a port mapping
	portPreserveDIP = 8 // a flag of a port mapping
	// portExternalVIP is a flag of a port mapping, which kube-proxy defines itself: pkg/proxy/winkernel/hns.go.
	portExternalVIP = 16
	// distributionSourceIP is a distribution type of a port mapping: by the client's address.
	distributionSourceIP = 2
)

func network(w wireNetwork, raw json.RawMessage) Network {
	n := Network{ID: upper(w.ID), Name: w.Name, Type: "NAT", Policies: some(w.Policies), Raw: raw}
	if w.Type != nil { // HNS omits the type NAT, whose number is 0
		n.Type = *w.Type
	}
	for _, ipam := range w.Ipams {
		for _, s := range ipam.Subnets {
			n.Subnets = append(n.Subnets, Subnet{Prefix: s.IPAddressPrefix, Gateway: gateway(s.Routes),
				Policies: some(s.Policies)})
		}
	}
	return n
}

func endpoint(w wireEndpoint, raw json.RawMessage) Endpoint {
	e := Endpoint{
		ID: upper(w.ID), Name: w.Name, Network: upper(w.HostComputeNetwork),
		Namespace: nonZeroID(w.HostComputeNamespace),
		MAC:       w.MacAddress, Gateway: gateway(w.Routes), Remote: w.Flags&endpointRemote != 0,
		Policies: some(w.Policies),
		Raw:      raw,
	}
	for _, a := range w.IPConfigurations {
		e.Addresses = append(e.Addresses, Address{IP: a.IPAddress, PrefixLength: a.PrefixLength})
	}
	return e
}

func loadBalancer(w wireLoadBalancer, raw json.RawMessage) LoadBalancer {
	l := LoadBalancer{
		ID: upper(w.ID), VIPs: some(w.FrontendVIPs), SourceVIP: w.SourceVIP, DSR: w.Flags&balancerDSR != 0,
		IPv6: w.Flags&balancerIPv6 != 0, Raw: raw,
	}
	for _, id := range w.HostComputeEndpoints {
		l.Endpoints = append(l.Endpoints, upper(id))
	}
	for _, p := range w.PortMappings {
		l.Ports = append(l.Ports, PortMapping{
			Protocol: protocol(p.Protocol), External: p.ExternalPort, Internal: p.InternalPort,
			Internally: p.Flags&portInternal != 0, LocalRouted: p.Flags&portLocalRouted != 0,
			UseMux: p.Flags&portUseMux != 0, PreserveDIP: p.Flags&portPreserveDIP != 0,
			ExternalVIP: p.Flags&portExternalVIP != 0, Sticky: p.DistributionType == distributionSourceIP,
		})
	}
	return l
}

func namespace(w wireNamespace, raw json.RawMessage) Namespace {
	n := Namespace{ID: upper(w.ID), Number: w.NamespaceID, Type: w.Type, Raw: raw}
	for _, r := range w.Resources {
		switch r.Type {
		case "Endpoint":
			n.Endpoints = append(n.Endpoints, upper(r.Data.ID))
		case "Container":
			n.Containers = append(n.Containers, r.Data.ID)
		}
	}
	return n
}

// some returns list, or nil if list is empty. So a list that was encoded to JSON and decoded again
// is equal to the original list.
func some[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func upper(id string) string { return strings.ToUpper(id) }

// nonZeroID returns id in upper case, or "" for the all-zero GUID that HNS uses for
// "none".
func nonZeroID(id string) string {
	if strings.Trim(id, "0-") == "" {
		return ""
	}
	return upper(id)
}

// gateway returns the next hop of the default route, or "" if there is no such route.
func gateway(routes []wireRoute) string {
	for _, r := range routes {
		if r.DestinationPrefix == "0.0.0.0/0" || r.DestinationPrefix == "::/0" {
			return r.NextHop
		}
	}
	return ""
}

func protocol(number uint32) string {
	switch number {
	case 1:
		return "icmp"
	case 6:
		return "tcp"
	case 17:
		return "udp"
	case 58:
		return "icmpv6"
	case 132:
		return "sctp"
	}
	return strconv.Itoa(int(number))
}

// sort sorts each kind of object by the properties by which people search for it: name, address and
// port, or number.
func (s *State) sort() {
	slices.SortFunc(s.Networks,
		func(a, b Network) int { return cmp.Or(natural.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(s.Endpoints,
		func(a, b Endpoint) int { return cmp.Or(compareIPs(a.IP(), b.IP()), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(s.LoadBalancers, func(a, b LoadBalancer) int {
		return cmp.Or(compareIPs(first(a.VIPs), first(b.VIPs)), comparePorts(a.Ports, b.Ports), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(s.Namespaces,
		func(a, b Namespace) int { return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID)) })
}

func first(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

// compareIPs orders addresses; texts that are not addresses come first.
func compareIPs(a, b string) int {
	x, _ := netip.ParseAddr(a) // the zero Addr, the result for invalid text, sorts first
	y, _ := netip.ParseAddr(b)
	return cmp.Or(x.Compare(y), cmp.Compare(a, b))
}

func comparePorts(a, b []PortMapping) int {
	return slices.CompareFunc(a, b, func(x, y PortMapping) int {
		return cmp.Or(cmp.Compare(x.External, y.External), cmp.Compare(x.Protocol, y.Protocol))
	})
}
