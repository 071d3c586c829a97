package hns

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Graph is the content of a picture of a node's networks: endpoints by network, and the load
// balancers that send traffic to the endpoints.
type Graph struct {
	Title    string
	Networks []Group
	Balanced []Bundle
}

// Group is a network with its endpoints.
type Group struct {
	Network   Network
	Endpoints []Vertex
}

// Vertex is an endpoint, with the name of the endpoint's pod.
type Vertex struct {
	Endpoint Endpoint
	Pod      string // "": no pod, or the pod is unknown
}

// Bundle has the load balancers of one Service that have the same endpoints. There is
// one load balancer for each port of the Service.
type Bundle struct {
	Service   string   // "": no Service, or the Service is unknown
	Lines     []string // such as "10.96.0.10  53/tcp, 53/udp"
	Endpoints []string // IDs
}

// Graph returns the picture of the view's objects.
func (v View) Graph(node string) Graph {
	g := Graph{Title: fmt.Sprintf("%s: %s, %s, %s", node, counted(len(v.State.Networks), "network"),
		counted(len(v.State.Endpoints), "endpoint"), counted(len(v.State.LoadBalancers), "load balancer"))}
	for _, n := range v.State.Networks {
		g.Networks = append(g.Networks, Group{Network: n, Endpoints: v.vertices(n.ID)})
	}
	if lost := v.lost(); len(lost) > 0 {
		g.Networks = append(g.Networks, Group{Network: Network{Name: "no network listed"}, Endpoints: lost})
	}
	g.Balanced = v.bundles()
	return g
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// vertices returns the endpoints of a network, those of this node first.
func (v View) vertices(network string) []Vertex {
	var here, remote []Vertex
	for _, e := range v.State.Endpoints {
		switch {
		case e.Network != network:
		case e.Remote:
			remote = append(remote, v.vertex(e))
		default:
			here = append(here, v.vertex(e))
		}
	}
	return append(here, remote...)
}

// lost returns the endpoints whose network is not in the view.
func (v View) lost() (lost []Vertex) {
	for _, e := range v.State.Endpoints {
		if !slices.ContainsFunc(v.State.Networks, func(n Network) bool { return n.ID == e.Network }) {
			lost = append(lost, v.vertex(e))
		}
	}
	return lost
}

func (v View) vertex(e Endpoint) Vertex { return Vertex{Endpoint: e, Pod: named(v.Known.PodOf(e))} }

func named(name string) string {
	if name == None || name == Unknown {
		return ""
	}
	return name
}

// bundles returns the load balancers, grouped by Service and endpoints.
func (v View) bundles() []Bundle {
	type key struct{ service, endpoints string }
	var order []key
	bundles := map[key]*Bundle{}
	ports := map[key]map[string][]string{} // for each bundle, the ports by virtual IP address
	vips := map[key][]string{}
	for _, l := range v.State.LoadBalancers {
		service := named(v.Known.ServiceOf(l))
		ids := slices.Sorted(slices.Values(l.Endpoints))
		k := key{service, strings.Join(ids, " ")}
		if bundles[k] == nil {
			order = append(order, k)
			bundles[k] = &Bundle{Service: service, Endpoints: ids}
			ports[k] = map[string][]string{}
		}
		vip := cmp.Or(strings.Join(l.VIPs, ", "), "node port")
		if ports[k][vip] == nil {
			vips[k] = append(vips[k], vip)
		}
		ports[k][vip] = append(ports[k][vip], l.ports())
	}
	var all []Bundle
	for _, k := range order {
		for _, vip := range vips[k] {
			bundles[k].Lines = append(bundles[k].Lines, vip+"  "+strings.Join(ports[k][vip], ", "))
		}
		all = append(all, *bundles[k])
	}
	return all
}

// lines returns the description of a network.
func (n Network) lines() []string {
	lines := []string{strings.TrimSpace(n.Name + "  " + n.Type)}
	for _, s := range n.Subnets {
		line := s.Prefix
		if s.Gateway != "" {
			line += " by " + s.Gateway
		}
		lines = append(lines, line)
	}
	return lines
}

// label returns the pod's name, or else the endpoint's own name.
func (v Vertex) label() string {
	return cmp.Or(v.Pod, v.Endpoint.Name, short(v.Endpoint.ID))
}

func (b Bundle) label() string {
	if len(b.Endpoints) == 0 {
		return cmp.Or(b.Service, "load balancer") + " (no endpoints)"
	}
	return cmp.Or(b.Service, "load balancer ("+strconv.Itoa(len(b.Endpoints))+")")
}
