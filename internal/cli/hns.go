package cli

import (
	"context"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) hnsCommand() *cobra.Command {
	cmd := group("hns", "Inspect HNS networks, endpoints, load balancers and policies",
		a.hnsListCommand(hnsNetworks()), a.hnsListCommand(hnsEndpoints()), a.hnsListCommand(hnsLoadBalancers()),
		a.hnsListCommand(hnsNamespaces()), a.hnsListCommand(hnsPolicies()), a.hnsGraphCommand(), a.hnsRemoveCommand())
	cmd.Long = `Lists the objects of the Host Network Service of Windows: the networks that a
CNI plugin made, the endpoints of pods, the load balancers that kube-proxy made
for Services, network namespaces, and all their policies.

Endpoints and namespaces are named by their pods, which the node's container
runtime reports. With a kubeconfig, load balancers are named by their Services,
and endpoints on other nodes by their pods. "none" stands for an object without
an owner; "unknown" for one whose owner could not be determined.

With --dump, the objects come from a file, such as one that is attached to an issue.`
	cmd.Example = examples(
		"hns endpoints", "address, MAC and policies of pods",
		"hns loadbalancers --kubeconfig admin.conf", "with backends",
		"hns policies --ip 192.168.15.167", "of one address",
		"hns graph > node.svg", "as a picture",
		"hns endpoints --dump dump.json", "of a saved dump",
	)
	return cmd
}

type hnsOptions struct {
	cluster clusterOptions
	network string
	ip      string
	filter  hns.Filter
	from    string // a file with a saved dump; "" if nodes are asked
}

func (o *hnsOptions) addFlags(a *app, cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.network, "network",
		"", "only objects of this network: its `name`, or the beginning of its ID")
	cmd.Flags().StringVar(&o.ip, "ip", "", "only objects with this `address` of a pod or a Service")
	cmd.Flags().StringVar(&o.from, "dump", "",
		"a saved dump in place of nodes: a `file` with JSON of hnsdiag list all -d or of Get-Hns…, or - for stdin")
	must(cmd.MarkFlagFilename("dump"))
	o.cluster.addFlags(cmd)
	must(cmd.RegisterFlagCompletionFunc("network", a.completeNetworks))
}

func (o *hnsOptions) complete() error {
	o.filter.Network = o.network
	if o.ip == "" {
		return nil
	}
	ip, err := netip.ParseAddr(o.ip)
	if err != nil {
		return usagef("--ip %s: write an address, such as 192.168.15.167", o.ip)
	}
	o.filter.IP = ip
	return nil
}

// networkLook returns a function that reads each node's network. The cluster is the
// same for all nodes, so networkLook asks it once.
func (a *app) networkLook(ctx context.Context, s *session, o *hnsOptions, owners bool) (lookAtNetwork, error) {
	look := hns.LookOptions{Filter: o.filter, Owners: owners}
	if owners {
		ctx, cancel := a.global.bounded(ctx)
		defer cancel()
		var err error
		if look.Cluster, err = a.askCluster(ctx, &o.cluster, s.story.Node("")); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (hns.View, error) {
		look := look
		look.Pipe = doc.RuntimePipe()
		return hns.Look(ctx, n, look, r)
	}, nil
}

type lookAtNetwork func(context.Context, *node.Node, config.Document, ui.Reporter) (hns.View, error)

// askCluster asks the cluster that the flags or KUBECONFIG name, if any, for its pods
// and Services.
func (a *app) askCluster(ctx context.Context, o *clusterOptions, r ui.Reporter) (known hns.Known, err error) {
	_, err = a.optionalClusterOnce(ctx, o, r, "Services stay unknown",
		func(ctx context.Context, found *cluster.Cluster) error {
			return known.AskCluster(ctx, found.Clientset())
		})
	return known, err
}
