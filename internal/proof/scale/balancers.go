package scale

import (
	"context"
	"net/netip"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
)

// balancers reads the load balancers of a node for the Services of a run. It reads the endpoints, of
// which there are more, only if a load balancer refers to one that it does not know.
type balancers struct {
	compute agentv1.ComputeClient
	known   map[string]netip.Addr // the address of each known endpoint, by its ID
}

// read returns the sorted addresses of the endpoints of each load balancer with an address for which ours
// returns true. An endpoint that HNS does not have counts as the zero address.
func (b *balancers) read(ctx context.Context, ours func(netip.Addr) bool) (map[netip.Addr][]netip.Addr, error) {
	all, err := hns.ReadLoadBalancers(ctx, b.compute)
	if err != nil {
		return nil, err
	}
	found := map[netip.Addr][]string{}
	complete := true
	for _, l := range all {
		front, ok := kubeproxy.FrontOf(l)
		if !ok || front.Protocol != "tcp" || front.Port != servicePort || !ours(front.VIP) {
			continue
		}
		found[front.VIP] = l.Endpoints
		for _, id := range l.Endpoints {
			_, known := b.known[id]
			complete = complete && known
		}
	}
	if !complete {
		if err := b.learn(ctx); err != nil {
			return nil, err
		}
	}
	return b.addresses(found), nil
}

// learn reads the addresses of all endpoints.
func (b *balancers) learn(ctx context.Context) error {
	all, err := hns.ReadEndpoints(ctx, b.compute)
	if err != nil {
		return err
	}
	b.known = make(map[string]netip.Addr, len(all))
	for _, e := range all {
		if address, err := netip.ParseAddr(e.IP()); err == nil {
			b.known[e.ID] = address
		}
	}
	return nil
}

func (b *balancers) addresses(found map[netip.Addr][]string) map[netip.Addr][]netip.Addr {
	all := make(map[netip.Addr][]netip.Addr, len(found))
	for vip, ids := range found {
		addresses := make([]netip.Addr, 0, len(ids))
		for _, id := range ids {
			addresses = append(addresses, b.known[id])
		}
		slices.SortFunc(addresses, netip.Addr.Compare)
		all[vip] = addresses
	}
	return all
}

// counted counts the calls for objects of HNS, and the bytes of the replies.
type counted struct {
	agentv1.ComputeClient
	cost *tally
}

func (c counted) Objects(ctx context.Context, request *agentv1.ComputeRequest, options ...grpc.CallOption) (
	*agentv1.ComputeReply, error) {
	reply, err := c.ComputeClient.Objects(ctx, request, options...)
	c.cost.add(reply)
	return reply, err
}

// add counts a call and its reply, which is nil after a failure.
func (t *tally) add(reply proto.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cost.Calls++
	t.cost.Bytes += int64(proto.Size(reply))
}
