package hns

import (
	"context"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node/hnsnetwork"
	"github.com/swdt-dev/swdt/internal/ui"
)

// These are values of Removed.Result.
const (
	removed     = "removed"
	wouldRemove = "wouldRemove"
)

// RemoveReport is the result of `swdt hns remove`.
type RemoveReport struct {
	Nodes []Removed `json:"nodes"` // always one node
}

// Removed is a network that was removed or, in a dry run, would be removed.
type Removed struct {
	fleet.Outcome        // Result is removed, wouldRemove or failed
	ID            string `json:"id"`
	Name          string `json:"name"`
	Type          string `json:"type"`
	// Endpoints is the number of endpoints that are removed with the network.
	Endpoints int `json:"endpoints"`
}

// FindRemoval returns the one network of this name, or whose ID begins so, as the report about its removal.
func FindRemoval(ctx context.Context, compute agentv1.ComputeClient, node, wanted string, dryRun bool) (Removed, error) {
	state, err := Read(ctx, compute)
	if err != nil {
		return Removed{}, err
	}
	var found []Network
	for _, n := range state.Networks {
		if n.is(wanted) {
			found = append(found, n)
		}
	}
	switch {
	case len(found) == 0:
		return Removed{}, fmt.Errorf("find the HNS network %q: there is none of this name or ID; `swdt hns networks -o wide` "+
			"lists them", wanted)
	case len(found) > 1:
		return Removed{}, fmt.Errorf("find the HNS network %q: %d networks have this name, or an ID that begins so; name one by "+
			"its ID of `swdt hns networks -o wide`", wanted, len(found))
	}
	r := Removed{Outcome: fleet.NewOutcome(node, removed, nil), ID: found[0].ID, Name: found[0].Name, Type: found[0].Type}
	if dryRun {
		r.Result = wouldRemove
	}
	for _, e := range state.Endpoints {
		if strings.EqualFold(e.Network, r.ID) {
			r.Endpoints++
		}
	}
	return r, nil
}

// Network returns the network to remove.
func (r Removed) Network() hnsnetwork.Network {
	return hnsnetwork.Network{ID: r.ID, Name: r.Name, Type: r.Type}
}

// String describes the network for people.
func (r Removed) String() string {
	endpoints := fmt.Sprintf("%d endpoints", r.Endpoints)
	if r.Endpoints == 1 {
		endpoints = "1 endpoint"
	}
	return fmt.Sprintf("the HNS network %s (%s, %s)", r.Name, r.Type, endpoints)
}

// WriteText writes a line for each network that was removed or would be removed.
func (r RemoveReport) WriteText(p *ui.Page) error {
	words := map[string]string{removed: "removed ", wouldRemove: "would remove "}
	for _, n := range r.Nodes {
		if _, err := fmt.Fprintln(p, words[n.Result]+n.String()); err != nil {
			return err
		}
	}
	return nil
}
