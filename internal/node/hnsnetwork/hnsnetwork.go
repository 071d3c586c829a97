// Package hnsnetwork removes networks of the Host Network Service from a node.
package hnsnetwork

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Network is a network of the Host Network Service.
type Network struct{ ID, Name, Type string }

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
		all = append(all, Network{ID: d.ID, Name: d.Name, Type: d.Type})
	}
	return all, err
}

// object has the fields of networks, endpoints and load balancers that decide what belongs together.
type object struct {
	ID, Name, Type string
	Network        string   `json:"HostComputeNetwork"`
	Endpoints      []string `json:"HostComputeEndpoints"`
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
