package hns_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/inspect/hns"
	"github.com/swdt-dev/swdt/internal/platform"
)

// TestFlagsOfLoadBalancers reads the flags that kube-proxy 1.36.3 sets (pkg/proxy/winkernel/hns.go, getLoadBalancerPolicyFlags,
// and hnslib 0.1.2, hcn/hcnloadbalancer.go, for their numbers).
func TestFlagsOfLoadBalancers(t *testing.T) {
	state := hns.Parse(map[platform.NetworkKind][][]byte{platform.HNSLoadBalancers: {
		[]byte(`{"ID":"a","Flags":3,"PortMappings":[{"Protocol":132,"InternalPort":1,"ExternalPort":2,"DistributionType":2,"Flags":28}]}`),
		[]byte(`{"ID":"b","PortMappings":[{"Protocol":6,"InternalPort":1,"ExternalPort":3,"DistributionType":1,"Flags":18}]}`),
	}})
	for i := range state.LoadBalancers {
		state.LoadBalancers[i].Raw = nil
	}
	want := []hns.LoadBalancer{
		{ID: "A", DSR: true, IPv6: true, Ports: []hns.PortMapping{{Protocol: "sctp", Internal: 1, External: 2, UseMux: true,
			PreserveDIP: true, ExternalVIP: true, Sticky: true}}},
		{ID: "B", Ports: []hns.PortMapping{{Protocol: "tcp", Internal: 1, External: 3, LocalRouted: true, ExternalVIP: true}}},
	}
	if diff := cmp.Diff(want, state.LoadBalancers); diff != "" {
		t.Error(diff)
	}
}
