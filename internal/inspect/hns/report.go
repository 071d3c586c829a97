package hns

import (
	"fmt"
	"slices"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Kind is a kind of object that `swdt hns` lists.
type Kind struct {
	Owners   bool // reports whether the owners of the objects are shown
	Document any  // a zero value of the type that Report returns
	Report   func([]fleet.Result[View]) any
	table    func(View) ui.Listing
}

// Columns returns the columns of the table of one node. If wide is true, they are those of -o wide.
func (k Kind) Columns(wide bool) []string { return k.table(View{Wide: wide}).Header }

// WriteText writes the objects of all nodes that answered.
func (k Kind) WriteText(p *ui.Page, results []fleet.Result[View]) error {
	err := fleet.WriteListings(p, results, func(v View) ui.Listing {
		v.Wide = p.Wide
		return k.table(v)
	})
	for _, result := range results {
		for _, u := range result.Value.State.Unreadable {
			if err == nil {
				_, err = fmt.Fprintln(p, ui.Warn("not readable: "+u.String()))
			}
		}
	}
	return err
}

// Networks lists networks.
func Networks() Kind {
	return Kind{
		table:    View.Networks,
		Document: Report[nodeNetworks]{},
		Report: reporter(func(o fleet.Outcome, v View) nodeNetworks {
			return nodeNetworks{o, v.State.Networks, v.unreadable(platform.HNSNetworks)}
		}),
	}
}

// Endpoints lists endpoints and their pods.
func Endpoints() Kind {
	return Kind{
		Owners:   true,
		table:    View.Endpoints,
		Document: Report[nodeEndpoints]{},
		Report: reporter(func(o fleet.Outcome, v View) nodeEndpoints {
			all := []ownedEndpoint{}
			for _, e := range v.State.Endpoints {
				all = append(all, ownedEndpoint{e, v.Known.PodOf(e)})
			}
			return nodeEndpoints{o, all, v.unreadable(platform.HNSEndpoints)}
		}),
	}
}

// LoadBalancers lists load balancers and their Services.
func LoadBalancers() Kind {
	return Kind{
		Owners:   true,
		table:    View.LoadBalancers,
		Document: Report[nodeLoadBalancers]{},
		Report: reporter(func(o fleet.Outcome, v View) nodeLoadBalancers {
			all := []ownedLoadBalancer{}
			for _, l := range v.State.LoadBalancers {
				all = append(all, ownedLoadBalancer{l, v.Known.ServiceOf(l)})
			}
			return nodeLoadBalancers{o, all, v.unreadable(platform.HNSLoadBalancers)}
		}),
	}
}

// Namespaces lists network namespaces and their pods.
func Namespaces() Kind {
	return Kind{
		Owners:   true,
		table:    View.Namespaces,
		Document: Report[nodeNamespaces]{},
		Report: reporter(func(o fleet.Outcome, v View) nodeNamespaces {
			all := []ownedNamespace{}
			for _, n := range v.State.Namespaces {
				all = append(all, ownedNamespace{n, v.Known.PodIn(v.All, n)})
			}
			return nodeNamespaces{o, all, v.unreadable(platform.HNSNamespaces)}
		}),
	}
}

// Policies lists the policies of networks and endpoints.
func Policies() Kind {
	return Kind{
		Owners:   true,
		table:    View.Policies,
		Document: Report[nodePolicies]{},
		Report: reporter(func(o fleet.Outcome, v View) nodePolicies {
			return nodePolicies{o, v.Owned()}
		}),
	}
}

// unreadable returns the unreadable objects of a kind.
func (v View) unreadable(kind platform.NetworkKind) []Unreadable {
	return keep(v.State.Unreadable, func(u Unreadable) bool { return u.Kind == kind })
}

// Report is the result of a command that lists a kind of object.
type Report[N identified] struct {
	Nodes []N `json:"nodes"`
}

// identified is the part of a report about one node. ids returns the node's objects as KIND/ID.
type identified interface{ ids() []string }

// Names returns the objects of all nodes, as KIND/ID.
func (r Report[N]) Names() (all []string) {
	for _, n := range r.Nodes {
		all = append(all, n.ids()...)
	}
	return all
}

// reporter returns a function that builds a Report from the results of nodes. The given function
// builds the part about one node.
func reporter[N identified](of func(fleet.Outcome, View) N) func([]fleet.Result[View]) any {
	return func(results []fleet.Result[View]) any {
		report := Report[N]{Nodes: []N{}}
		for _, result := range results {
			report.Nodes = append(report.Nodes, of(result.Outcome(), result.Value))
		}
		return report
	}
}

// Each of these types has the objects of one kind on one node.
type (
	nodeNetworks struct {
		fleet.Outcome
		Networks   []Network    `json:"networks"`
		Unreadable []Unreadable `json:"unreadable"`
	}
	nodeEndpoints struct {
		fleet.Outcome
		Endpoints  []ownedEndpoint `json:"endpoints"`
		Unreadable []Unreadable    `json:"unreadable"`
	}
	nodeLoadBalancers struct {
		fleet.Outcome
		LoadBalancers []ownedLoadBalancer `json:"loadBalancers"`
		Unreadable    []Unreadable        `json:"unreadable"`
	}
	nodeNamespaces struct {
		fleet.Outcome
		Namespaces []ownedNamespace `json:"namespaces"`
		Unreadable []Unreadable     `json:"unreadable"`
	}
	nodePolicies struct {
		fleet.Outcome
		Policies []Owned `json:"policies"`
	}
)

func (n nodeNetworks) ids() []string {
	return idsOf("network", n.Networks, func(n Network) string { return n.ID })
}

func (n nodeEndpoints) ids() []string {
	return idsOf("endpoint", n.Endpoints, func(e ownedEndpoint) string { return e.ID })
}

func (n nodeLoadBalancers) ids() []string {
	return idsOf("loadbalancer", n.LoadBalancers, func(l ownedLoadBalancer) string { return l.ID })
}

func (n nodeNamespaces) ids() []string {
	return idsOf("namespace", n.Namespaces, func(n ownedNamespace) string { return n.ID })
}

// ids returns the IDs of the networks and endpoints that have policies, since a policy has
// no ID of its own.
func (n nodePolicies) ids() []string {
	var all []string
	for _, p := range n.Policies {
		all = append(all, p.Kind+"/"+p.ID)
	}
	return slices.Compact(all)
}

func idsOf[T any](kind string, objects []T, id func(T) string) (all []string) {
	for _, object := range objects {
		all = append(all, kind+"/"+id(object))
	}
	return all
}

// These types add the owner to an object.
type (
	ownedEndpoint struct {
		Endpoint
		Pod string `json:"pod"`
	}
	ownedLoadBalancer struct {
		LoadBalancer
		Service string `json:"service"`
	}
	ownedNamespace struct {
		Namespace
		Pod string `json:"pod"`
	}
)
