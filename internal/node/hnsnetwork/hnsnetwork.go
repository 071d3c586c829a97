// Package hnsnetwork removes networks of the Host Network Service from a node.
package hnsnetwork

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Network is a network of the Host Network Service.
type Network struct {
	ID, Name, Type string
	Subnets        []netip.Prefix
}

// OfPods reports whether the network is of a type that networks of pods have. nat, ICS, Private and Internal are of
// Windows itself, Docker and Hyper-V (hcsshim v0.12, hcn/hcnnetwork.go).
func (n Network) OfPods() bool {
	return slices.ContainsFunc([]string{"L2Bridge", "L2Tunnel", "Overlay", "Transparent"},
		func(t string) bool { return strings.EqualFold(t, n.Type) })
}

// List returns the networks of a node. A node without the Host Network Service has none.
func List(ctx context.Context, n *node.Node) ([]Network, error) {
	documents, err := objects(ctx, n, agentv1.ComputeKind_COMPUTE_KIND_NETWORKS)
	var all []Network
	for _, d := range documents {
		all = append(all, Network{ID: d.ID, Name: d.Name, Type: d.Type, Subnets: d.subnets()})
	}
	return all, err
}

// Addresses are the addresses of a node's own network stack that belong to networks of the Host Network Service.
type Addresses struct {
	subnets   []netip.Prefix // of networks behind the machine
	endpoints []netip.Addr
}

// AddressesOf finds these addresses: those in the subnets of Windows' own networks (nat, ICS, Internal, Private), whose
// adapter is a vEthernet of the machine, and those of endpoints, as a pod network attaches one to the machine. The
// subnets of networks of pods do not count: an L2 bridge may have the subnet of the machine itself.
func AddressesOf(ctx context.Context, n *node.Node) (a Addresses, err error) {
	networks, err := List(ctx, n)
	if err != nil || len(networks) == 0 {
		return a, err
	}
	for _, network := range networks {
		if !network.OfPods() {
			a.subnets = append(a.subnets, network.Subnets...)
		}
	}
	endpoints, err := objects(ctx, n, agentv1.ComputeKind_COMPUTE_KIND_ENDPOINTS)
	for _, endpoint := range endpoints {
		for _, c := range endpoint.IPConfigurations {
			if ip, err := netip.ParseAddr(c.IPAddress); err == nil {
				a.endpoints = append(a.endpoints, ip)
			}
		}
	}
	return a, err
}

// Has reports whether an address is one of them.
func (a Addresses) Has(ip netip.Addr) bool {
	return slices.Contains(a.endpoints, ip) ||
		slices.ContainsFunc(a.subnets, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// object has the fields of networks, endpoints and load balancers that decide what belongs together.
type object struct {
	ID, Name, Type string
	Network        string   `json:"HostComputeNetwork"`
	Endpoints      []string `json:"HostComputeEndpoints"`
	Ipams          []struct {
		Subnets []struct {
			Prefix string `json:"IpAddressPrefix"`
		}
	}
	IPConfigurations []struct {
		IPAddress string `json:"IpAddress"`
	} `json:"IpConfigurations"`
}

func (o object) subnets() (all []netip.Prefix) {
	for _, ipam := range o.Ipams {
		for _, subnet := range ipam.Subnets {
			if prefix, err := netip.ParsePrefix(subnet.Prefix); err == nil {
				all = append(all, prefix)
			}
		}
	}
	return all
}

func objects(ctx context.Context, n *node.Node, kind agentv1.ComputeKind) (all []object, err error) {
	reply, err := n.Compute.Objects(ctx, &agentv1.ComputeRequest{Kind: kind})
	if errors.Is(err, fault.ErrNotSupported) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list objects of the Host Network Service: %w", err)
	}
	for _, o := range reply.GetObjects() {
		var read object
		if json.Unmarshal(o.GetDocument(), &read) == nil && read.ID != "" {
			all = append(all, read)
		}
	}
	return all, nil
}

const (
	// removeWithin bounds a removal, with the reconnections. Windows gives the adapter its addresses back within
	// seconds; a new lease of DHCP may take longer.
	removeWithin = 3 * time.Minute
	// mostTries bounds how often the connection may break.
	mostTries = 5
)

// Remove removes networks with their load balancers and endpoints. The removal of a network interrupts the connections of
// its adapter: Remove reconnects, and looks again at what is left.
func Remove(ctx context.Context, n *node.Node, r ui.Reporter, networks ...Network) error {
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	tries := 0
	return n.Reconnecting(ctx, r, func(ctx context.Context) error {
		if tries++; tries > mostTries {
			return fmt.Errorf("remove HNS networks: the connection was lost %d times: remove them on the machine's console, "+
				"with the same command", mostTries)
		}
		for _, network := range networks {
			if err := remove(ctx, n, network.ID); err != nil {
				return fmt.Errorf("remove the HNS network %s: %w", network.Name, err)
			}
		}
		return nil
	})
}

// remove removes load balancers, then endpoints, then the network, as AgentBaker does (staging/cse/windows/
// cleanupnetwork.ps1): since patch 10.0.17763.1554, Windows wants the policy lists to be removed first (Azure/aks-engine PR 3956).
func remove(ctx context.Context, n *node.Node, network string) error {
	endpoints, err := objects(ctx, n, agentv1.ComputeKind_COMPUTE_KIND_ENDPOINTS)
	if err != nil {
		return err
	}
	endpoints = slices.DeleteFunc(endpoints, func(e object) bool { return !strings.EqualFold(e.Network, network) })
	balancers, err := objects(ctx, n, agentv1.ComputeKind_COMPUTE_KIND_LOADBALANCERS)
	if err != nil {
		return err
	}
	for _, b := range balancers {
		ofNetwork := slices.ContainsFunc(endpoints, func(e object) bool { return containsFold(b.Endpoints, e.ID) })
		if !ofNetwork {
			continue
		}
		if err := removeOne(ctx, n, agentv1.ComputeKind_COMPUTE_KIND_LOADBALANCERS, b.ID); err != nil {
			return err
		}
	}
	for _, e := range endpoints {
		if err := removeOne(ctx, n, agentv1.ComputeKind_COMPUTE_KIND_ENDPOINTS, e.ID); err != nil {
			return err
		}
	}
	return removeOne(ctx, n, agentv1.ComputeKind_COMPUTE_KIND_NETWORKS, network)
}

// removeOne removes an object, unless it is gone already.
func removeOne(ctx context.Context, n *node.Node, kind agentv1.ComputeKind, id string) error {
	_, err := n.Compute.Remove(ctx, &agentv1.ComputeRequest{Kind: kind, Id: id})
	if errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	return err
}

func containsFold(all []string, one string) bool {
	return slices.ContainsFunc(all, func(s string) bool { return strings.EqualFold(s, one) })
}
