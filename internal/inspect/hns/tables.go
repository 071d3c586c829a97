package hns

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/swdt-dev/swdt/internal/ui"
)

// View is the content of tables and pictures of a node's networks.
type View struct {
	State State // the objects to print
	All   State // all objects of the node
	Known Known // the pods and Services that may own the objects
	// Wide tables have full IDs, and all backends of load balancers.
	Wide bool
}

// Networks returns the table of networks.
func (v View) Networks() ui.Listing {
	t := ui.Listing{Nothing: "no networks", Header: []string{"NETWORK", "TYPE", "SUBNETS", "GATEWAY", "ENDPOINTS",
		"POLICIES", "ID"}}
	for _, n := range v.State.Networks {
		var prefixes, gateways []string
		policies := slices.Clone(n.Policies)
		for _, s := range n.Subnets {
			prefixes = append(prefixes, s.Prefix)
			gateways = append(gateways, cmp.Or(s.Gateway, "-"))
			policies = append(policies, s.Policies...)
		}
		t.Rows = append(t.Rows, []string{
			n.Name, n.Type, strings.Join(prefixes, ", "), strings.Join(gateways, ", "),
			v.endpointsOf(n), kinds(policies), v.id(n.ID),
		})
	}
	return t
}

// endpointsOf returns the number of a network's endpoints on this node. If there are endpoints on
// other nodes, it adds their number, such as "24 + 14 remote".
func (v View) endpointsOf(n Network) string {
	here, remote := 0, 0
	for _, e := range v.All.Endpoints {
		switch {
		case e.Network != n.ID:
		case e.Remote:
			remote++
		default:
			here++
		}
	}
	if remote == 0 {
		return strconv.Itoa(here)
	}
	return strconv.Itoa(here) + " + " + strconv.Itoa(remote) + " remote"
}

// kinds returns the types of policies, each with the number of policies of the type. The types are
// in the order in which they first appear.
func kinds(policies []Policy) string {
	var order []string
	count := map[string]int{}
	for _, p := range policies {
		if count[p.Type]++; count[p.Type] == 1 {
			order = append(order, p.Type)
		}
	}
	for i, kind := range order {
		if n := count[kind]; n > 1 {
			order[i] = strconv.Itoa(n) + " " + kind
		}
	}
	return strings.Join(order, ", ")
}

// Endpoints returns the table of endpoints.
func (v View) Endpoints() ui.Listing {
	t := ui.Listing{Nothing: "no endpoints", Header: []string{"POD", "IP", "MAC", "NETWORK", "WHERE", "NAMESPACE",
		"POLICIES", "ID"}}
	for _, e := range v.State.Endpoints {
		where := "here"
		if e.Remote {
			where = "remote"
		}
		t.Rows = append(t.Rows, []string{
			v.Known.PodOf(e), e.IP(), e.MAC, v.networkName(e.Network), where, v.compartment(e.Namespace),
			kinds(e.Policies), v.id(e.ID),
		})
	}
	return t
}

// networkName returns the name of the network with the ID. If there is no such network, it returns
// the ID as the view prints it.
func (v View) networkName(id string) string {
	if n, ok := v.All.Network(id); ok {
		return n.Name
	}
	return v.id(id)
}

// compartment returns the number of a namespace. If there is no such namespace, it returns the ID as
// the view prints it.
func (v View) compartment(id string) string {
	if n, ok := find(v.All.Namespaces, func(n Namespace) bool { return n.ID == id }); ok {
		return strconv.Itoa(int(n.Number))
	}
	return v.id(id)
}

// LoadBalancers returns the table of load balancers.
func (v View) LoadBalancers() ui.Listing {
	t := ui.Listing{Nothing: "no load balancers", Header: []string{"SERVICE", "VIP", "PORT", "BACKENDS", "SOURCE VIP",
		"FLAGS", "ID"}}
	for _, l := range v.State.LoadBalancers {
		t.Rows = append(t.Rows, []string{
			v.Known.ServiceOf(l), cmp.Or(strings.Join(l.VIPs, ", "), "node port"), l.ports(), v.backends(l),
			l.SourceVIP, l.flags(), v.id(l.ID),
		})
	}
	return t
}

func (l LoadBalancer) ports() string {
	var ports []string
	for _, p := range l.Ports {
		ports = append(ports, p.String())
	}
	return strings.Join(ports, ", ")
}

// String returns a text such as 443/tcp, or 443/tcp → 4443 if the ports differ.
func (p PortMapping) String() string {
	text := strconv.Itoa(int(p.External)) + "/" + p.Protocol
	if p.Internal != p.External {
		text += " → " + strconv.Itoa(int(p.Internal))
	}
	return text
}

// maxBackends is the maximum number of a load balancer's endpoints in a table that is not
// wide.
const maxBackends = 3

func (v View) backends(l LoadBalancer) string {
	var ips []string
	for i, id := range l.Endpoints {
		if !v.Wide && i == maxBackends && len(l.Endpoints) > maxBackends+1 {
			ips = append(ips, "… "+strconv.Itoa(len(l.Endpoints)-maxBackends)+" more")
			break
		}
		ips = append(ips, v.backend(id))
	}
	return cmp.Or(strings.Join(ips, ", "), None)
}

// backend returns the address of the endpoint with the ID, or the ID with a remark if
// there is no such endpoint.
func (v View) backend(id string) string {
	e, ok := v.All.Endpoint(id)
	if !ok {
		return v.id(id) + " (not listed)"
	}
	return cmp.Or(e.IP(), v.id(id))
}

func (l LoadBalancer) flags() string {
	var flags []string
	add := func(on bool, flag string) {
		if on {
			flags = append(flags, flag)
		}
	}
	add(l.DSR, "DSR")
	for _, p := range l.Ports {
		add(p.Internally, "ILB")
		add(p.LocalRouted, "local")
		add(p.UseMux, "mux")
		add(p.PreserveDIP, "preserve DIP")
		add(p.ExternalVIP, "external")
		add(p.Sticky, "sticky")
	}
	return strings.Join(flags, ", ")
}

// Namespaces returns the table of namespaces.
func (v View) Namespaces() ui.Listing {
	t := ui.Listing{Nothing: "no namespaces", Header: []string{"NAMESPACE", "POD", "TYPE", "IP", "CONTAINERS", "ID"}}
	for _, n := range v.State.Namespaces {
		var ips, containers []string
		for _, id := range n.Endpoints {
			ips = append(ips, v.backend(id))
		}
		for _, id := range n.Containers {
			containers = append(containers, v.id(id))
		}
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(int(n.Number)), v.Known.PodIn(v.All, n), n.Type, strings.Join(ips, ", "),
			strings.Join(containers, ", "), v.id(n.ID),
		})
	}
	return t
}

// Owned is a policy with the object to which the policy belongs.
type Owned struct {
	Kind string `json:"kind"` // network, subnet or endpoint
	ID   string `json:"id"`
	// the network's name, for a subnet also the subnet's prefix; or the endpoint's address
	Name   string `json:"name"`
	Pod    string `json:"pod"`
	Policy Policy `json:"policy"`
	Words  string `json:"words"`
}

// Owned returns all policies, those of networks first.
func (v View) Owned() []Owned {
	owned := []Owned{}
	add := func(kind, id, name, pod string, policies []Policy) {
		for _, p := range policies {
			owned = append(owned, Owned{Kind: kind, ID: id, Name: name, Pod: pod, Policy: p, Words: p.Words()})
		}
	}
	for _, n := range v.State.Networks {
		add("network", n.ID, n.Name, "", n.Policies)
		for _, s := range n.Subnets {
			add("subnet", n.ID, n.Name+" "+s.Prefix, "", s.Policies)
		}
	}
	for _, e := range v.State.Endpoints {
		add("endpoint", e.ID, cmp.Or(e.IP(), e.Name), v.Known.PodOf(e), e.Policies)
	}
	return owned
}

// Policies returns the table of policies.
func (v View) Policies() ui.Listing {
	t := ui.Listing{Nothing: "no policies", Header: []string{"OF", "POD", "POLICY", "WHAT IT DOES"}}
	if v.Wide {
		t.Header = append(t.Header, "ID")
	}
	for _, o := range v.Owned() {
		row := []string{o.Kind + " " + o.Name, o.Pod, o.Policy.Type, o.Words}
		if v.Wide {
			row = append(row, o.ID)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// id returns an ID as this view prints it: in full or shortened.
func (v View) id(id string) string {
	if v.Wide {
		return id
	}
	return short(id)
}

// short returns the beginning of an ID, which is long enough to distinguish the ID from
// others on a node.
func short(id string) string {
	first, _, _ := strings.Cut(id, "-")
	return first[:min(len(first), 13)]
}
