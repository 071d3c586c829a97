package node_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/hnsnetwork"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/rpcerror"
)

// fakeCompute is a Host Network Service that breaks the connection when a network is removed.
type fakeCompute struct {
	agentv1.UnimplementedComputeServer
	n *fakeNode

	mutex    sync.Mutex
	networks []string
}

func (c *fakeCompute) Objects(context.Context, *agentv1.ComputeRequest) (*agentv1.ComputeReply, error) {
	return &agentv1.ComputeReply{}, nil
}

func (c *fakeCompute) Remove(_ context.Context, request *agentv1.ComputeRequest) (*agentv1.ComputeReply, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	i := slices.Index(c.networks, request.GetId())
	if i < 0 {
		return nil, rpcerror.ToStatus(fault.ErrNotExist)
	}
	c.networks = slices.Delete(c.networks, i, i+1)
	c.n.ssh.BreakConnections()
	return &agentv1.ComputeReply{}, nil
}

// Windows gives the adapter of a removed network back to the machine, and the connection breaks before the agent has
// answered.
func TestTheRemovalOfNetworksOutlivesTheConnection(t *testing.T) {
	f := newFakeNode(t, faults{})
	f.compute = &fakeCompute{n: f, networks: []string{"1", "2"}}
	c := f.connect()
	err := hnsnetwork.Remove(t.Context(), c, ui.Discard{}, hnsnetwork.Network{ID: "1", Name: "Calico"},
		hnsnetwork.Network{ID: "2", Name: "External"})
	if err != nil || len(f.compute.networks) != 0 {
		t.Errorf("left %q: %v", f.compute.networks, err)
	}
	if c.Connections() < 3 {
		t.Errorf("%d connections", c.Connections())
	}
}
