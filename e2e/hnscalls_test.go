//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// calls has numbers of calls of HNS, by function.
type calls map[string]int

// calls returns the calls of all kube-proxies that have run on the node.
func (n proxyNode) calls(t testing.TB) calls {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(n.hns(), "calls", "kube-proxy-*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	all := calls{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines, _, _ := strings.Cut(string(text), "\x00")
		for line := range strings.Lines(lines) {
			var function string
			var count int
			if _, err := fmt.Sscanf(line, "%s %d", &function, &count); err != nil {
				t.Fatalf("%s: line %q: %v", file, line, err)
			}
			all[function] += count
		}
	}
	return all
}

// since returns the calls after an earlier moment.
func (c calls) since(earlier calls) calls {
	after := calls{}
	for function, count := range c {
		if count != earlier[function] {
			after[function] = count - earlier[function]
		}
	}
	return after
}

func (c calls) total() (total int) {
	for _, count := range c {
		total += count
	}
	return total
}

// syncs returns the number of synchronizations: each lists the endpoints once. A removal lists the one
// endpoint too. kube-proxy synchronizes the two IP families by themselves.
func (c calls) syncs() int { return c["HcnEnumerateEndpoints"] - c["HcnDeleteEndpoint"] }

// listings returns the calls with which synchronizations list what HNS has: it looks the network up
// twice, and opens, reads and closes each endpoint and each load balancer.
func listings(syncs, openedBalancers, openedEndpoints int) calls {
	return calls{
		"HcnEnumerateNetworks": 2 * syncs, "HcnOpenNetwork": 2 * syncs,
		"HcnQueryNetworkProperties": 2 * syncs, "HcnCloseNetwork": 2 * syncs,
		"HcnEnumerateEndpoints": syncs, "HcnOpenEndpoint": openedEndpoints,
		"HcnQueryEndpointProperties": openedEndpoints, "HcnCloseEndpoint": openedEndpoints,
		"HcnEnumerateLoadBalancers": syncs, "HcnOpenLoadBalancer": openedBalancers,
		"HcnQueryLoadBalancerProperties": openedBalancers, "HcnCloseLoadBalancer": openedBalancers,
	}
}

// creations returns the calls with which load balancers and endpoints are made: 3 for each load
// balancer, and 9 for each endpoint, since kube-proxy looks the network up for each of them.
func creations(balancers, endpoints int) calls {
	return calls{
		"HcnCreateEndpoint": endpoints, "HcnQueryEndpointProperties": endpoints, "HcnCloseEndpoint": endpoints,
		"HcnEnumerateNetworks": endpoints, "HcnOpenNetwork": 2 * endpoints,
		"HcnQueryNetworkProperties": endpoints, "HcnCloseNetwork": 2 * endpoints,
		"HcnCreateLoadBalancer": balancers, "HcnQueryLoadBalancerProperties": balancers,
		"HcnCloseLoadBalancer": balancers,
	}
}

// plus adds up calls. The result has no zeros, as since returns them.
func (c calls) plus(more calls) calls {
	sum := maps.Clone(c)
	for function, count := range more {
		sum[function] += count
	}
	maps.DeleteFunc(sum, func(_ string, count int) bool { return count == 0 })
	return sum
}
