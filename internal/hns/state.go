// Package hns is the host's side of Windows' Host Network Service: what networks,
// endpoints, load balancers and namespaces a node has, and to which pods and
// Services they belong.
//
//   - state.go, read.go: the objects, and reading them from a node
//   - policies.go: what policies do, in words
//   - known.go, pods.go, services.go: whose the objects are, as the container
//     runtime and the cluster tell
//   - select.go, tables.go: a part of it, and as tables for people
//   - graph.go, dot.go, svg.go: as a picture
package hns

import "encoding/json"

// State is what the Host Network Service of one node has. It is the same after a
// way through JSON.
type State struct {
	Networks      []Network      `json:"networks"`
	Endpoints     []Endpoint     `json:"endpoints"`
	LoadBalancers []LoadBalancer `json:"loadBalancers"`
	Namespaces    []Namespace    `json:"namespaces"`
}

// IDs are in upper case everywhere here, as hnsdiag prints them; Raw is the
// service's own document.

// Network is a virtual switch's network.
type Network struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Type     string          `json:"type"` // Overlay, L2Bridge, NAT, Transparent…
	Subnets  []Subnet        `json:"subnets,omitempty"`
	Policies []Policy        `json:"policies,omitempty"`
	Raw      json.RawMessage `json:"raw,omitempty"`
}

// Subnet is an address space of a network.
type Subnet struct {
	Prefix   string   `json:"prefix"`            // 192.168.15.128/26
	Gateway  string   `json:"gateway,omitempty"` // next hop of its default route
	Policies []Policy `json:"policies,omitempty"`
}

// Endpoint is a port of a network, or of one on another node.
type Endpoint struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Network   string          `json:"network,omitempty"`   // ID
	Namespace string          `json:"namespace,omitempty"` // ID
	MAC       string          `json:"mac,omitempty"`
	Addresses []Address       `json:"addresses,omitempty"`
	Gateway   string          `json:"gateway,omitempty"`
	Remote    bool            `json:"remote"` // it is on another node
	Policies  []Policy        `json:"policies,omitempty"`
	Raw       json.RawMessage `json:"raw,omitempty"`
}

// Address of an endpoint.
type Address struct {
	IP           string `json:"ip"`
	PrefixLength int    `json:"prefixLength,omitempty"`
}

// LoadBalancer distributes what comes to its addresses. kube-proxy makes one for
// each port of a Service; one without an address is for a node port.
type LoadBalancer struct {
	ID        string          `json:"id"`
	VIPs      []string        `json:"vips,omitempty"`
	SourceVIP string          `json:"sourceVIP,omitempty"`
	Ports     []PortMapping   `json:"ports,omitempty"`
	Endpoints []string        `json:"endpoints,omitempty"` // IDs
	DSR       bool            `json:"dsr"`                 // answers go straight to the client
	Raw       json.RawMessage `json:"raw,omitempty"`
}

// PortMapping is from the load balancer's port to its endpoints'.
type PortMapping struct {
	Protocol    string `json:"protocol"` // tcp, udp, or a number
	External    uint16 `json:"external"`
	Internal    uint16 `json:"internal"`
	Internally  bool   `json:"internalLoadBalancer,omitempty"`
	LocalRouted bool   `json:"localRoutedVIP,omitempty"` // the node itself may use it
	PreserveDIP bool   `json:"preserveDIP,omitempty"`
}

// Namespace is a network compartment: what a pod's containers share.
type Namespace struct {
	ID         string          `json:"id"`
	Number     uint32          `json:"number"`               // of the compartment
	Type       string          `json:"type"`                 // Host, HostDefault, Guest, GuestDefault
	Endpoints  []string        `json:"endpoints,omitempty"`  // IDs
	Containers []string        `json:"containers,omitempty"` // of compute systems
	Raw        json.RawMessage `json:"raw,omitempty"`
}

// Policy is a rule of a network, a subnet or an endpoint.
type Policy struct {
	Type     string          `json:"type"`
	Settings json.RawMessage `json:"settings,omitempty"`
}

// Network finds one by its ID.
func (s State) Network(id string) (Network, bool) {
	return find(s.Networks, func(n Network) bool { return n.ID == id })
}

// Endpoint finds one by its ID.
func (s State) Endpoint(id string) (Endpoint, bool) {
	return find(s.Endpoints, func(e Endpoint) bool { return e.ID == id })
}

func find[T any](all []T, is func(T) bool) (found T, ok bool) {
	for _, one := range all {
		if is(one) {
			return one, true
		}
	}
	return found, false
}

// IP is the endpoint's first address, empty where it has none.
func (e Endpoint) IP() string {
	if len(e.Addresses) == 0 {
		return ""
	}
	return e.Addresses[0].IP
}
