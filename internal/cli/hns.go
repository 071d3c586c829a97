package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/hns"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

func (a *app) hnsCommand() *cobra.Command {
	cmd := group("hns", "The node's networks, endpoints, load balancers and policies",
		a.hnsListCommand(hnsNetworks()), a.hnsListCommand(hnsEndpoints()), a.hnsListCommand(hnsLoadBalancers()),
		a.hnsListCommand(hnsNamespaces()), a.hnsListCommand(hnsPolicies()), a.hnsGraphCommand())
	cmd.Long = `What Windows' Host Network Service has: the networks that a CNI plugin made, the
endpoints of pods, the load balancers that kube-proxy made for Services, network
namespaces, and all their policies.

Endpoints and namespaces are named by the pods that they belong to, as the node's
container runtime tells; load balancers by their Services, and endpoints on other
nodes by their pods, where a kubeconfig says which cluster to ask. "none" is what
is nobody's; "unknown" is what nobody told.`
	cmd.Example = examples(
		"hns endpoints", "each pod's address, MAC and policies",
		"hns loadbalancers --kubeconfig admin.conf", "each Service's, with its backends",
		"hns policies --ip 192.168.15.167", "all that decides about one pod's packets",
		"hns graph > node.svg", "a picture of it all",
	)
	return cmd
}

type hnsOptions struct {
	cluster clusterOptions
	network string
	ip      string
	filter  hns.Filter
}

func (o *hnsOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.network, "network", "", "only what is of this network: its `name`, or the beginning of its ID")
	cmd.Flags().StringVar(&o.ip, "ip", "", "only what has to do with this `address`: a pod's, or a Service's")
	o.cluster.addFlags(cmd)
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

// lookAtNetworks asks nodes for their networks, and whose they are.
type networkLook struct {
	app     *app
	filter  hns.Filter
	owners  bool // whether it is asked whose they are
	cluster hns.Known
}

// look gets ready: the cluster is the same for all nodes and is asked once.
func (a *app) networkLook(ctx context.Context, s *session, o *hnsOptions, owners bool) (*networkLook, error) {
	l := &networkLook{app: a, filter: o.filter, owners: owners}
	if !owners {
		return l, nil
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	var err error
	l.cluster, err = a.askCluster(ctx, &o.cluster, s.story.Node(""))
	return l, err
}

// askCluster asks the cluster at hand for its pods and Services.
func (a *app) askCluster(ctx context.Context, o *clusterOptions, r ui.Reporter) (known hns.Known, err error) {
	_, err = a.askAtHand(ctx, o, r, "Services stay unknown", func(ctx context.Context, found *cluster.Cluster) error {
		return known.AskCluster(ctx, found.Clientset())
	})
	return known, err
}

// at looks at one node.
func (l *networkLook) at(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (hns.View, error) {
	state, err := hns.Read(ctx, n.Compute)
	if errors.Is(err, host.ErrNotSupported) {
		err = fmt.Errorf("%w; this Windows has no Host Network Service, which comes with the feature Containers: `swdt setup` installs it", err)
	}
	if err != nil {
		return hns.View{}, err
	}
	view := hns.View{State: state.Select(l.filter), All: state, Known: l.cluster}
	if !l.owners {
		return view, nil
	}
	err = withRuntime(ctx, n, doc, r, func(runtime runtimev1.RuntimeServiceClient) error {
		view.Known.Here, err = hns.Pods(ctx, runtime)
		return err
	})
	if ctx.Err() != nil {
		return view, ctx.Err()
	}
	view.Known.Runtime = err == nil
	if err != nil {
		r.Warn("the container runtime does not tell whose endpoints these are: %v", err)
	}
	return view, nil
}
