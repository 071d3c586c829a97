//go:build windows

// Command hcnread prints, as JSON, the objects that Microsoft's own hcsshim reads from the Host
// Network Service and the Host Compute Service.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/Microsoft/hcsshim"
	"github.com/Microsoft/hcsshim/hcn"
)

func main() {
	read, err := read()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(read)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hcnread:", err)
		os.Exit(1)
	}
}

type everything struct {
	Networks      []hcn.HostComputeNetwork
	Endpoints     []hcn.HostComputeEndpoint
	Namespaces    []hcn.HostComputeNamespace
	LoadBalancers []hcn.HostComputeLoadBalancer
	Containers    []hcsshim.ContainerProperties
}

func read() (all everything, err error) {
	if all.Networks, err = hcn.ListNetworks(); err != nil {
		return all, err
	}
	if all.Endpoints, err = hcn.ListEndpoints(); err != nil {
		return all, err
	}
	if all.Namespaces, err = hcn.ListNamespaces(); err != nil {
		return all, err
	}
	if all.LoadBalancers, err = hcn.ListLoadBalancers(); err != nil {
		return all, err
	}
	all.Containers, err = hcsshim.GetContainers(hcsshim.ComputeSystemQuery{})
	return all, err
}
