package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/ui"
)

// hnsKind is a kind of object that hns lists, with its help.
type hnsKind struct {
	name, short, long string
	hns.Kind
}

func hnsNetworks() hnsKind {
	return hnsKind{
		name: "networks", short: "List networks, with their subnets and gateways",
		long: `ENDPOINTS counts the endpoints on this node, and the remote endpoints, which
stand for pods on other nodes.`,
		Kind: hns.Networks(),
	}
}

func hnsEndpoints() hnsKind {
	return hnsKind{
		name: "endpoints", short: "List endpoints, with their pods",
		long: `NAMESPACE is the number of the network compartment; WHERE is remote for endpoints
that stand for pods on other nodes. An endpoint of this node that has no owner and is
not the network's own may be left over from a pod that is gone.`,
		Kind: hns.Endpoints(),
	}
}

func hnsLoadBalancers() hnsKind {
	return hnsKind{
		name: "loadbalancers", short: "List load balancers, with their Services",
		long: `kube-proxy makes one for each port of a Service, and for a node port one without
an address of its own. FLAGS: DSR, direct server return; ILB, an internal load
balancer; local, the node itself may use it; preserve DIP, backends see the VIP;
external, the address is not one of the cluster; sticky, a client reaches the same
endpoint again. "swdt network services" compares them with the cluster's Services.`,
		Kind: hns.LoadBalancers(),
	}
}

func hnsNamespaces() hnsKind {
	return hnsKind{
		name: "namespaces", short: "List network namespaces, with their pods",
		long: `A namespace is a network compartment, which the containers of a pod share.`,
		Kind: hns.Namespaces(),
	}
}

func hnsPolicies() hnsKind {
	return hnsKind{
		name: "policies", short: "List the policies of networks and endpoints",
		long: `Words describe each policy that swdt knows. For any other, the service's own
settings are printed. JSON and YAML have both.`,
		Kind: hns.Policies(),
	}
}

func (a *app) hnsListCommand(kind hnsKind) *cobra.Command {
	o := &hnsOptions{}
	cmd := forNodes(&cobra.Command{
		Use: kind.name + " [flags]", Short: kind.short,
		Long: kind.short + ".\n\n" + kind.long + `

JSON and YAML have all fields, and in "raw" the document of the service.`,
		Example: examples("hns "+kind.name, "", "hns "+kind.name+" --network Calico -o json", "for scripts"),
		Args:    arguments(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runHNSList(cmd.Context(), kind, o) },
	})
	o.addFlags(a, cmd)
	return cmd
}

func (a *app) runHNSList(ctx context.Context, kind hnsKind, o *hnsOptions) error {
	if err := o.complete(); err != nil {
		return err
	}
	results, err := a.networks(ctx, o, kind.Owners, a.begin)
	if err != nil {
		return err
	}
	failed := fleet.Failures(results)
	if failed != nil && len(results) == 1 && a.inText() {
		return failed
	}
	if err := a.print(kind.Report(results), func(p *ui.Page) error { return kind.WriteText(p, results) }); err != nil {
		return err
	}
	return failed
}
