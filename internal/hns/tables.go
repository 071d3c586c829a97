package hns

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// View is what is shown of a node's network.
type View struct {
	State State // what is shown
	All   State // what there is
	Known Known // whose it is
}

// Table is a kind of object for people.
type Table struct {
	Nothing string // what to say where there are no rows
	Header  []string
	Rows    [][]string
}

// Networks as a table.
func (v View) Networks() Table {
	t := Table{Nothing: "no networks", Header: []string{"NETWORK", "TYPE", "SUBNETS", "GATEWAY", "ENDPOINTS", "POLICIES", "ID"}}
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
			v.endpointsOf(n), kinds(policies), short(n.ID),
		})
	}
	return t
}

// endpointsOf counts the endpoints of a network: here + on other nodes.
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

// kinds counts policies by their type, in the order in which they come.
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

// Endpoints as a table.
func (v View) Endpoints() Table {
	t := Table{Nothing: "no endpoints", Header: []string{"POD", "IP", "MAC", "NETWORK", "WHERE", "NAMESPACE", "POLICIES", "ID"}}
	for _, e := range v.State.Endpoints {
		where := "here"
		if e.Remote {
			where = "remote"
		}
		t.Rows = append(t.Rows, []string{
			v.Known.PodOf(e), e.IP(), e.MAC, v.networkName(e.Network), where, v.compartment(e.Namespace), kinds(e.Policies), short(e.ID),
		})
	}
	return t
}

// networkName of an ID, or the ID where there is no such network.
func (v View) networkName(id string) string {
	if n, ok := v.All.Network(id); ok {
		return n.Name
	}
	return short(id)
}

// compartment is the number of a namespace, or its ID where it is gone.
func (v View) compartment(id string) string {
	if n, ok := find(v.All.Namespaces, func(n Namespace) bool { return n.ID == id }); ok {
		return strconv.Itoa(int(n.Number))
	}
	return short(id)
}

// LoadBalancers as a table.
func (v View) LoadBalancers() Table {
	t := Table{Nothing: "no load balancers", Header: []string{"SERVICE", "VIP", "PORT", "BACKENDS", "SOURCE VIP", "FLAGS", "ID"}}
	for _, l := range v.State.LoadBalancers {
		t.Rows = append(t.Rows, []string{
			v.Known.ServiceOf(l), cmp.Or(strings.Join(l.VIPs, ", "), "node port"), l.ports(), v.backends(l), l.SourceVIP, l.flags(), short(l.ID),
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

// String is 443/tcp, and 443/tcp → 4443 where it changes on the way.
func (p PortMapping) String() string {
	text := strconv.Itoa(int(p.External)) + "/" + p.Protocol
	if p.Internal != p.External {
		text += " → " + strconv.Itoa(int(p.Internal))
	}
	return text
}

// shownBackends is how many of a load balancer's addresses are shown.
const shownBackends = 3

func (v View) backends(l LoadBalancer) string {
	var ips []string
	for i, id := range l.Endpoints {
		if i == shownBackends && len(l.Endpoints) > shownBackends+1 {
			ips = append(ips, "… "+strconv.Itoa(len(l.Endpoints)-shownBackends)+" more")
			break
		}
		ips = append(ips, v.backend(id))
	}
	return cmp.Or(strings.Join(ips, ", "), None)
}

// backend is an endpoint's address. One that is not there is said to be missing.
func (v View) backend(id string) string {
	e, ok := v.All.Endpoint(id)
	if !ok {
		return short(id) + " (not listed)"
	}
	return cmp.Or(e.IP(), short(id))
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
		add(p.PreserveDIP, "preserve DIP")
	}
	return strings.Join(flags, ", ")
}

// Namespaces as a table.
func (v View) Namespaces() Table {
	t := Table{Nothing: "no namespaces", Header: []string{"NAMESPACE", "POD", "TYPE", "IP", "CONTAINERS", "ID"}}
	for _, n := range v.State.Namespaces {
		var ips, containers []string
		for _, id := range n.Endpoints {
			ips = append(ips, v.backend(id))
		}
		for _, id := range n.Containers {
			containers = append(containers, short(id))
		}
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(int(n.Number)), v.Known.PodIn(v.All, n), n.Type, strings.Join(ips, ", "), strings.Join(containers, ", "), short(n.ID),
		})
	}
	return t
}

// Owned is a policy and whose it is.
type Owned struct {
	Kind   string `json:"kind"` // network, subnet, endpoint
	ID     string `json:"id"`
	Name   string `json:"name"` // of the network, its subnet, or the endpoint's address
	Pod    string `json:"pod,omitempty"`
	Policy Policy `json:"policy"`
	Words  string `json:"words"`
}

// Owned are all policies: networks' first.
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

// Policies as a table.
func (v View) Policies() Table {
	t := Table{Nothing: "no policies", Header: []string{"OF", "POD", "POLICY", "WHAT IT DOES"}}
	for _, o := range v.Owned() {
		t.Rows = append(t.Rows, []string{o.Kind + " " + o.Name, o.Pod, o.Policy.Type, o.Words})
	}
	return t
}

// short is as much of an ID as tells it from others on a node.
func short(id string) string {
	first, _, _ := strings.Cut(id, "-")
	return first[:min(len(first), 13)]
}
