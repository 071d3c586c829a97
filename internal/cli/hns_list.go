package cli

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/hns"
	"github.com/swdt-dev/swdt/internal/ui"
)

// hnsKind is a kind of object that is listed.
type hnsKind struct {
	name, short, long string

	owners   bool // whether it is shown whose they are
	table    func(hns.View) hns.Table
	document any // a zero value of what report returns
	report   func([]fleet.Result[hns.View]) any
}

// hnsReport is the result of a command that lists a kind of object.
type hnsReport[N hnsIDs] struct {
	Nodes []N `json:"nodes"`
}

// hnsIDs is one node's objects, by kind and ID.
type hnsIDs interface{ ids() []string }

// names implements namer.
func (r hnsReport[N]) names() (all []string) {
	for _, n := range r.Nodes {
		all = append(all, n.ids()...)
	}
	return all
}

// hnsReporter reports what of returns for each node.
func hnsReporter[N hnsIDs](of func(frame, hns.View) N) func([]fleet.Result[hns.View]) any {
	return func(results []fleet.Result[hns.View]) any {
		report := hnsReport[N]{Nodes: []N{}}
		for _, result := range results {
			report.Nodes = append(report.Nodes, of(newFrame(result.Name(), resultOK, result.Err), result.Value))
		}
		return report
	}
}

// One node's objects of each kind.
type (
	hnsNetworksOf struct {
		frame
		Networks []hns.Network `json:"networks"`
	}
	hnsEndpointsOf struct {
		frame
		Endpoints []hnsEndpoint `json:"endpoints"`
	}
	hnsLoadBalancersOf struct {
		frame
		LoadBalancers []hnsLoadBalancer `json:"loadBalancers"`
	}
	hnsNamespacesOf struct {
		frame
		Namespaces []hnsNamespace `json:"namespaces"`
	}
	hnsPoliciesOf struct {
		frame
		Policies []hns.Owned `json:"policies"`
	}
)

func (n hnsNetworksOf) ids() []string {
	return idsOf("network", n.Networks, func(n hns.Network) string { return n.ID })
}

func (n hnsEndpointsOf) ids() []string {
	return idsOf("endpoint", n.Endpoints, func(e hnsEndpoint) string { return e.ID })
}

func (n hnsLoadBalancersOf) ids() []string {
	return idsOf("loadbalancer", n.LoadBalancers, func(l hnsLoadBalancer) string { return l.ID })
}

func (n hnsNamespacesOf) ids() []string {
	return idsOf("namespace", n.Namespaces, func(n hnsNamespace) string { return n.ID })
}

// ids of policies are those of the networks and endpoints that have them: a policy
// has none of its own.
func (n hnsPoliciesOf) ids() []string {
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

func hnsNetworks() hnsKind {
	return hnsKind{
		name: "networks", short: "The networks, their subnets and gateways",
		long:     `ENDPOINTS counts those on this node, and remote ones: of pods on other nodes.`,
		table:    hns.View.Networks,
		document: hnsReport[hnsNetworksOf]{},
		report: hnsReporter(func(f frame, v hns.View) hnsNetworksOf {
			return hnsNetworksOf{f, orNone(v.State.Networks)}
		}),
	}
}

// The objects as they are, and whose they are.
type (
	hnsEndpoint struct {
		hns.Endpoint
		Pod string `json:"pod"`
	}
	hnsLoadBalancer struct {
		hns.LoadBalancer
		Service string `json:"service"`
	}
	hnsNamespace struct {
		hns.Namespace
		Pod string `json:"pod"`
	}
)

func hnsEndpoints() hnsKind {
	return hnsKind{
		name: "endpoints", short: "The endpoints, and the pods that they are of", owners: true,
		long: `NAMESPACE is the number of the network compartment; WHERE is remote for endpoints
that stand for pods on other nodes. An endpoint of this node that is nobody's and
is not the network's own may be left over from a pod that is gone.`,
		table:    hns.View.Endpoints,
		document: hnsReport[hnsEndpointsOf]{},
		report: hnsReporter(func(f frame, v hns.View) hnsEndpointsOf {
			all := []hnsEndpoint{}
			for _, e := range v.State.Endpoints {
				all = append(all, hnsEndpoint{e, v.Known.PodOf(e)})
			}
			return hnsEndpointsOf{f, all}
		}),
	}
}

func hnsLoadBalancers() hnsKind {
	return hnsKind{
		name: "loadbalancers", short: "The load balancers, and the Services that they are of", owners: true,
		long: `kube-proxy makes one for each port of a Service, and for a node port one without
an address of its own. FLAGS: DSR, direct server return; ILB, an internal load
balancer; local, the node itself may use it; preserve DIP, backends see the VIP.`,
		table:    hns.View.LoadBalancers,
		document: hnsReport[hnsLoadBalancersOf]{},
		report: hnsReporter(func(f frame, v hns.View) hnsLoadBalancersOf {
			all := []hnsLoadBalancer{}
			for _, l := range v.State.LoadBalancers {
				all = append(all, hnsLoadBalancer{l, v.Known.ServiceOf(l)})
			}
			return hnsLoadBalancersOf{f, all}
		}),
	}
}

func hnsNamespaces() hnsKind {
	return hnsKind{
		name: "namespaces", short: "The network namespaces, and the pods that they are of", owners: true,
		long:     `A namespace is a network compartment, which the containers of a pod share.`,
		table:    hns.View.Namespaces,
		document: hnsReport[hnsNamespacesOf]{},
		report: hnsReporter(func(f frame, v hns.View) hnsNamespacesOf {
			all := []hnsNamespace{}
			for _, n := range v.State.Namespaces {
				all = append(all, hnsNamespace{n, v.Known.PodIn(v.All, n)})
			}
			return hnsNamespacesOf{f, all}
		}),
	}
}

func hnsPolicies() hnsKind {
	return hnsKind{
		name: "policies", short: "The policies of networks and endpoints, in words", owners: true,
		long: `What a policy does is told in words; of one that swdt does not know, the service's
own settings are shown. JSON and YAML have both.`,
		table:    hns.View.Policies,
		document: hnsReport[hnsPoliciesOf]{},
		report: hnsReporter(func(f frame, v hns.View) hnsPoliciesOf {
			return hnsPoliciesOf{f, orNone(v.Owned())}
		}),
	}
}

func (a *app) hnsListCommand(kind hnsKind) *cobra.Command {
	o := &hnsOptions{}
	cmd := forNodes(&cobra.Command{
		Use: kind.name + " [flags]", Short: kind.short,
		Long: kind.short + ".\n\n" + kind.long + `

JSON and YAML have all fields, and in "raw" the service's own document.`,
		Example: examples("hns "+kind.name, "", "hns "+kind.name+" --network Calico -o json", "for scripts"),
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runHNSList(cmd.Context(), kind, o) },
	})
	o.addFlags(cmd)
	return cmd
}

func (a *app) runHNSList(ctx context.Context, kind hnsKind, o *hnsOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	s.quiet = true
	look, err := a.networkLook(ctx, s, o, kind.owners)
	if err != nil {
		return err
	}
	results := onNodes(ctx, s, look.at)
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	err = a.print(kind.report(results), func(p *ui.Page) error { return writeTables(p, results, kind.table) })
	if err != nil {
		return err
	}
	return failed
}

// writeTables is one table of all nodes, with their names where they are several.
func writeTables[T any](w io.Writer, results []fleet.Result[T], table func(T) hns.Table) error {
	var header []string
	var rows [][]string
	var nothing string
	for _, result := range results {
		if result.Err != nil {
			continue // told on stderr
		}
		t := table(result.Value)
		header, nothing = t.Header, t.Nothing
		for _, row := range t.Rows {
			if len(results) > 1 {
				row = slices.Insert(row, 0, result.Name())
			}
			rows = append(rows, row)
		}
	}
	if len(results) > 1 && header != nil {
		header = slices.Insert(header, 0, "NODE")
	}
	if header == nil {
		return nil
	}
	return ui.TableOr(w, nothing, header, rows)
}
