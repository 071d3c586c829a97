package kubeproxy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
)

// node has the HNS objects of one node.
type node struct {
	Settings
	overlay   bool
	subnets   []remoteSubnet
	network   string                         // ID
	endpoints map[string]*hns.Endpoint       // by ID, of all networks
	at        map[netip.Addr][]*hns.Endpoint // of kube-proxy's network, in the order of the listing
	fronts    map[Front][]*hns.LoadBalancer
	used      map[string]bool // IDs of the endpoints that a load balancer names
	balancers []hns.LoadBalancer
	// root is the endpoint to which health checks are forwarded; nil if they are not.
	root *hns.Endpoint
}

// Front is the address and port at which a load balancer takes connections. A node port has no address, but a family.
type Front struct {
	Protocol string // in lower case
	Family   corev1.IPFamily
	VIP      netip.Addr
	Port     uint16
}

// String returns ADDRESS:PORT/PROTOCOL, or node port PORT/PROTOCOL.
func (f Front) String() string {
	if !f.VIP.IsValid() {
		return fmt.Sprintf("node port %d/%s (%s)", f.Port, f.Protocol, f.Family)
	}
	return netip.AddrPortFrom(f.VIP, f.Port).String() + "/" + f.Protocol
}

// remoteSubnet is a part of an overlay network that is on another node.
type remoteSubnet struct {
	prefix   netip.Prefix
	provider netip.Addr
}

// newNode indexes the objects of a node. It returns false if HNS does not have kube-proxy's network.
func newNode(s Settings, state hns.State) (*node, bool) {
	n := &node{Settings: s, endpoints: make(map[string]*hns.Endpoint, len(state.Endpoints)),
		at:     make(map[netip.Addr][]*hns.Endpoint, len(state.Endpoints)),
		fronts: make(map[Front][]*hns.LoadBalancer, len(state.LoadBalancers)), used: map[string]bool{},
		balancers: state.LoadBalancers}
	found := false
	for _, network := range state.Networks {
		if !found && strings.EqualFold(network.Name, s.Network) {
			found, n.network = true, network.ID
			n.overlay = strings.EqualFold(network.Type, "Overlay")
			n.subnets = remoteSubnets(network)
		}
	}
	for i := range state.Endpoints {
		e := &state.Endpoints[i]
		n.endpoints[e.ID] = e
		if n.root == nil && s.ForwardHealthCheckVIP && s.RootEndpoint != "" && e.Name == s.RootEndpoint {
			n.root = e
		}
		if e.Network != n.network {
			continue
		}
		for _, a := range e.Addresses[:min(2, len(e.Addresses))] { // kube-proxy reads the first two
			if address := parseAddr(a.IP); address.IsValid() {
				n.at[address] = append(n.at[address], e)
			}
		}
	}
	for i := range state.LoadBalancers {
		l := &state.LoadBalancers[i]
		for _, id := range l.Endpoints {
			n.used[id] = true
		}
		if f, ok := FrontOf(*l); ok {
			n.fronts[f] = append(n.fronts[f], l)
		}
	}
	return n, found
}

// FrontOf returns the front end of a load balancer. It returns false for one that kube-proxy would not make: kube-proxy
// makes each with one port mapping and at most one address.
func FrontOf(l hns.LoadBalancer) (Front, bool) {
	if len(l.Ports) != 1 || len(l.VIPs) > 1 {
		return Front{}, false
	}
	f := Front{Protocol: l.Ports[0].Protocol, Port: l.Ports[0].External, Family: corev1.IPv4Protocol}
	if l.IPv6 {
		f.Family = corev1.IPv6Protocol
	}
	if len(l.VIPs) == 1 {
		f.VIP = parseAddr(l.VIPs[0])
		f.Family = familyOf(f.VIP)
		return f, f.VIP.IsValid()
	}
	return f, true
}

func remoteSubnets(network hns.Network) (all []remoteSubnet) {
	for _, p := range network.Policies {
		var route struct{ DestinationPrefix, ProviderAddress string }
		if p.Type != "RemoteSubnetRoute" || json.Unmarshal(p.Settings, &route) != nil {
			continue
		}
		prefix, err := netip.ParsePrefix(route.DestinationPrefix)
		if provider := parseAddr(route.ProviderAddress); err == nil && provider.IsValid() {
			all = append(all, remoteSubnet{prefix, provider})
		}
	}
	return all
}

// provider returns the address of the node that has an address of the overlay network, or is one; the invalid address if it
// is in no remote subnet.
func (n *node) provider(a netip.Addr) (found netip.Addr) {
	for _, s := range n.subnets {
		if s.prefix.Contains(a) || s.provider == a {
			found = s.provider
		}
	}
	return found
}

// resolve returns the endpoint that kube-proxy takes for an address: one of this node before a remote one; nil if HNS has
// none.
func (n *node) resolve(a netip.Addr) *hns.Endpoint {
	all := n.at[a]
	for _, e := range all {
		if !e.Remote {
			return e
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// ofProxy reports whether kube-proxy has made a remote endpoint: it has no name of its own, and its MAC address is made
// from its IP address (conjureMac).
func ofProxy(e hns.Endpoint, a netip.Addr) bool {
	return e.Remote && strings.EqualFold(strings.ReplaceAll(e.MAC, ":", "-"), conjuredMAC(a))
}

func conjuredMAC(a netip.Addr) string {
	if a.Is4() {
		b := a.As4()
		return fmt.Sprintf("02-11-%02x-%02x-%02x-%02x", b[0], b[1], b[2], b[3])
	}
	b := a.As16()
	return fmt.Sprintf("02-11-%02x-%02x-%02x-%02x", b[15], b[14], b[13], b[12])
}

// providerOf returns the provider address of an endpoint; the invalid address if it has none.
func providerOf(e hns.Endpoint) netip.Addr {
	for _, p := range e.Policies {
		var settings struct{ ProviderAddress string }
		if p.Type == "ProviderAddress" && json.Unmarshal(p.Settings, &settings) == nil {
			return parseAddr(settings.ProviderAddress)
		}
	}
	return netip.Addr{}
}
