// Package hns reads the networks, endpoints, load balancers and namespaces of a node's Host Network
// Service (HNS), and finds the pods and Services to which these objects belong.
//
//   - state.go, read.go: define the objects, and read them from a node
//   - lenient.go: objects with fields of an unknown form
//   - file.go: reads objects of a saved dump
//   - policies.go: describes the effects of policies in words
//   - known.go, pods.go, services.go: the owners of objects, from the container
//     runtime and the cluster
//   - look.go: the objects of a node with their owners
//   - await.go: waits until a network exists
//   - select.go, tables.go, report.go: select objects, and print them as tables and
//     results
//   - graph.go, svg.go: draw objects as a picture
package hns

import "encoding/json"

// State has all objects of the Host Network Service of one node. A State that was encoded to JSON
// and decoded again is equal to the original State.
type State struct {
	Networks      []Network      `json:"networks"`
	Endpoints     []Endpoint     `json:"endpoints"`
	LoadBalancers []LoadBalancer `json:"loadBalancers"`
	Namespaces    []Namespace    `json:"namespaces"`
	Unreadable    []Unreadable   `json:"unreadable,omitempty"`
}

// The IDs of the objects below are in upper case, as hnsdiag prints them. Each Raw is the
// service's own document of the object.

// Network is a network of a virtual switch.
type Network struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Type     string          `json:"type"` // such as Overlay, L2Bridge, NAT or Transparent
	Subnets  []Subnet        `json:"subnets"`
	Policies []Policy        `json:"policies"`
	Raw      json.RawMessage `json:"raw"`
}

// Subnet is an address space of a network.
type Subnet struct {
	Prefix   string   `json:"prefix"`  // 192.168.15.128/26
	Gateway  string   `json:"gateway"` // next hop of the subnet's default route
	Policies []Policy `json:"policies"`
}

// Endpoint is a port of a network. A remote endpoint is on another node.
type Endpoint struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Network   string          `json:"network"`   // ID
	Namespace string          `json:"namespace"` // ID
	MAC       string          `json:"mac"`
	Addresses []Address       `json:"addresses"`
	Gateway   string          `json:"gateway"`
	Remote    bool            `json:"remote"` // reports whether the endpoint is on another node
	Policies  []Policy        `json:"policies"`
	Raw       json.RawMessage `json:"raw"`
}

// Address is an address of an endpoint.
type Address struct {
	IP           string `json:"ip"`
	PrefixLength int    `json:"prefixLength"`
}

// LoadBalancer distributes the traffic to its virtual addresses among endpoints. kube-proxy creates
// a load balancer for each port of a Service. A load balancer without an address belongs to a node
// port.
type LoadBalancer struct {
	ID        string          `json:"id"`
	VIPs      []string        `json:"vips"`
	SourceVIP string          `json:"sourceVIP"`
	Ports     []PortMapping   `json:"ports"`
	Endpoints []string        `json:"endpoints"` // IDs
	DSR       bool            `json:"dsr"`       // endpoints answer the client directly
	IPv6      bool            `json:"ipv6"`      // the load balancer is of IPv6
	Raw       json.RawMessage `json:"raw"`
}

// PortMapping maps a port of the load balancer to a port of its endpoints.
type PortMapping struct {
	Protocol    string `json:"protocol"` // tcp, udp, sctp, or a number
	External    uint16 `json:"external"`
	Internal    uint16 `json:"internal"`
	Internally  bool   `json:"internalLoadBalancer"`
	LocalRouted bool   `json:"localRoutedVIP"` // the node itself may use the mapping
	UseMux      bool   `json:"useMux"`         // an outer load balancer distributes the traffic
	PreserveDIP bool   `json:"preserveDIP"`
	ExternalVIP bool   `json:"externalVIP"` // the address is not one of the cluster
	Sticky      bool   `json:"sticky"`      // a client reaches the same endpoint again
}

// Namespace is a network compartment, which the containers of a pod share.
type Namespace struct {
	ID         string          `json:"id"`
	Number     uint32          `json:"number"`     // number of the compartment
	Type       string          `json:"type"`       // Host, HostDefault, Guest or GuestDefault
	Endpoints  []string        `json:"endpoints"`  // IDs
	Containers []string        `json:"containers"` // IDs of compute systems
	Raw        json.RawMessage `json:"raw"`
}

// Policy is a rule of a network, a subnet or an endpoint.
type Policy struct {
	Type     string          `json:"type"`
	Settings json.RawMessage `json:"settings"`
}

// Network returns the network with the ID, and whether there is one.
func (s State) Network(id string) (Network, bool) {
	return find(s.Networks, func(n Network) bool { return n.ID == id })
}

// Endpoint returns the endpoint with the ID, and whether there is one.
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

// IP returns the endpoint's first address, or "" if it has none.
func (e Endpoint) IP() string {
	if len(e.Addresses) == 0 {
		return ""
	}
	return e.Addresses[0].IP
}
