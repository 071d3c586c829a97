//go:build windows

// Command lab-flannel stands for flanneld.exe with the backend vxlan: it makes the HNS network of a node's pods, and ends.
// The network has the form that flannel gives it (flannel-io/flannel v0.28.10, pkg/backend/vxlan/device_windows.go), with
// the policies that Windows or flannel add later: ProviderAddress, DrMacAddress and HostRoute, and one RemoteSubnetRoute
// for each other node (vxlan_network_windows.go). flanneld reads the addresses from Node objects; this program has them as
// arguments. Like flanneld, it leaves a network alone that has the name already.
package main

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/swdt-dev/swdt/lab/pods/hcn"
)

const usage = "usage: lab-flannel -subnet PREFIX -address IP [PREFIX=IP of another node…]"

func main() {
	subnet := flag.String("subnet", "", "the addresses of this node's pods")
	address := flag.String("address", "", "this node's address")
	flag.Parse()
	if err := run(*subnet, *address, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "lab-flannel:", err)
		os.Exit(1)
	}
}

const (
	name = "flannel.4096"
	vni  = 4096
)

func run(subnet, address string, others []string) error {
	prefix, err := netip.ParsePrefix(subnet)
	if err != nil {
		return fmt.Errorf("%w; %s", err, usage)
	}
	there, err := hcn.Named(hcn.Network, name)
	if err != nil || there != "" {
		return err
	}
	policies := []hcn.Object{
		policy("NetAdapterName", hcn.Object{"NetworkAdapterName": "Ethernet"}),
		policy("ProviderAddress", hcn.Object{"ProviderAddress": address}),
		policy("DrMacAddress", hcn.Object{"Address": "00-15-5D-4C-11-20"}), policy("HostRoute", hcn.Object{}),
	}
	for _, other := range others {
		destination, provider, found := strings.Cut(other, "=")
		if !found {
			return fmt.Errorf("%q is no PREFIX=IP; %s", other, usage)
		}
		policies = append(policies, policy("RemoteSubnetRoute", hcn.Object{"DestinationPrefix": destination, "IsolationId": vni,
			"ProviderAddress": provider, "DistributedRouterMacAddress": "66-3b-e1-0a-77-01"}))
	}
	const enableNonPersistent = 8
	return hcn.CreateNetwork(hcn.Object{
		"Name": name, "Type": "Overlay", "Flags": enableNonPersistent, "SchemaVersion": hcn.Object{"Major": 2, "Minor": 0},
		"Ipams": []hcn.Object{{"Type": "Static", "Subnets": []hcn.Object{{"IpAddressPrefix": subnet,
			"Policies": []hcn.Object{policy("VSID", hcn.Object{"IsolationId": vni})},
			"Routes":   []hcn.Object{{"NextHop": prefix.Addr().Next().String(), "DestinationPrefix": "0.0.0.0/0"}}}}}},
		"Policies": policies,
	})
}

func policy(kind string, settings hcn.Object) hcn.Object {
	return hcn.Object{"Type": kind, "Settings": settings}
}
