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
	name, field, short, long string

	owners   bool // whether it is shown whose they are
	table    func(hns.View) hns.Table
	document func(hns.View) any
}

func hnsNetworks() hnsKind {
	return hnsKind{
		name: "networks", field: "networks", short: "The networks, their subnets and gateways",
		long:     `ENDPOINTS counts those on this node, and remote ones: of pods on other nodes.`,
		table:    hns.View.Networks,
		document: func(v hns.View) any { return v.State.Networks },
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
		name: "endpoints", field: "endpoints", short: "The endpoints, and the pods that they are of", owners: true,
		long: `NAMESPACE is the number of the network compartment; WHERE is remote for endpoints
that stand for pods on other nodes. An endpoint of this node that is nobody's and
is not the network's own may be left over from a pod that is gone.`,
		table: hns.View.Endpoints,
		document: func(v hns.View) any {
			all := []hnsEndpoint{}
			for _, e := range v.State.Endpoints {
				all = append(all, hnsEndpoint{e, v.Known.PodOf(e)})
			}
			return all
		},
	}
}

func hnsLoadBalancers() hnsKind {
	return hnsKind{
		name: "loadbalancers", field: "loadBalancers", short: "The load balancers, and the Services that they are of", owners: true,
		long: `kube-proxy makes one for each port of a Service, and for a node port one without
an address of its own. FLAGS: DSR, direct server return; ILB, an internal load
balancer; local, the node itself may use it; preserve DIP, backends see the VIP.`,
		table: hns.View.LoadBalancers,
		document: func(v hns.View) any {
			all := []hnsLoadBalancer{}
			for _, l := range v.State.LoadBalancers {
				all = append(all, hnsLoadBalancer{l, v.Known.ServiceOf(l)})
			}
			return all
		},
	}
}

func hnsNamespaces() hnsKind {
	return hnsKind{
		name: "namespaces", field: "namespaces", short: "The network namespaces, and the pods that they are of", owners: true,
		long:  `A namespace is a network compartment, which the containers of a pod share.`,
		table: hns.View.Namespaces,
		document: func(v hns.View) any {
			all := []hnsNamespace{}
			for _, n := range v.State.Namespaces {
				all = append(all, hnsNamespace{n, v.Known.PodIn(v.All, n)})
			}
			return all
		},
	}
}

func hnsPolicies() hnsKind {
	return hnsKind{
		name: "policies", field: "policies", short: "The policies of networks and endpoints, in words", owners: true,
		long: `What a policy does is told in words; of one that swdt does not know, the service's
own settings are shown. JSON and YAML have both.`,
		table:    hns.View.Policies,
		document: func(v hns.View) any { return v.Owned() },
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
	if failed != nil && len(results) == 1 && a.global.output == ui.Text {
		return failed
	}
	var nodes []map[string]any
	for _, result := range results {
		of := map[string]any{"name": result.Name()}
		if result.Err != nil {
			of["error"] = result.Err.Error()
		} else {
			of[kind.field] = kind.document(result.Value)
		}
		nodes = append(nodes, of)
	}
	err = ui.Print(a.streams.Out, a.global.output, map[string]any{"nodes": nodes}, func(w io.Writer) error {
		return writeTables(w, results, kind.table)
	})
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
