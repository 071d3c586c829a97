package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/stats"
)

// Processes is how a node is asked for its processes.
type Processes interface {
	List(ctx context.Context, in *agentv1.ListProcessesRequest, o ...grpc.CallOption) (*agentv1.ListProcessesReply, error)
}

// Node asks Windows for the process that the runtime names as a container's. Of
// a container with several processes that is a part only.
type Node struct {
	runtime   Runtime
	processes Processes
	cores     float64
	details   *details
}

// NewNode asks a node for the processes of its runtime's containers.
func NewNode(runtime Runtime, processes Processes, cores float64) *Node {
	return &Node{runtime: runtime, processes: processes, cores: cores, details: newDetails(runtime)}
}

// Source is stats.Node.
func (n *Node) Source() stats.Source { return stats.Node }

var errNoProcess = errors.New("the runtime tells the process of none of its containers; leave out --source node")

// Ask lists the containers and the processes.
func (n *Node) Ask(ctx context.Context) ([]stats.Sample, float64, error) {
	running := &runtimev1.ContainerFilter{State: &runtimev1.ContainerStateValue{State: runtimev1.ContainerState_CONTAINER_RUNNING}}
	reply, err := n.runtime.ListContainers(ctx, &runtimev1.ListContainersRequest{Filter: running})
	if err != nil {
		return nil, 0, fmt.Errorf("ListContainers: %w", err)
	}
	of := map[uint32]stats.Container{}
	for _, c := range reply.GetContainers() {
		if pid := n.details.of(ctx, c.GetId()).pid; pid != 0 {
			of[pid] = containerOf(&runtimev1.ContainerAttributes{Id: c.GetId(), Metadata: c.GetMetadata(), Labels: c.GetLabels()})
		}
	}
	if len(of) == 0 && len(reply.GetContainers()) > 0 {
		return nil, 0, errNoProcess
	}
	list, err := n.processes.List(ctx, &agentv1.ListProcessesRequest{})
	if err != nil {
		return nil, 0, err
	}
	now := time.Now() // the list has no time of its own
	var samples []stats.Sample
	for _, p := range list.GetProcesses() {
		if c, ok := of[p.GetPid()]; ok {
			samples = append(samples, stats.Sample{
				Container: c, Taken: now, Counter: stats.Value(uint64(p.GetCpu().AsDuration())), Memory: stats.Value(p.GetMemoryBytes()),
			})
		}
	}
	return samples, n.cores, nil
}
