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

// clockStep is how much older than its container a process may look.
const clockStep = 2 * time.Second

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
	of := map[uint32]*runtimev1.Container{}
	for _, c := range reply.GetContainers() {
		if pid := n.details.of(ctx, c.GetId()).pid; pid != 0 {
			of[pid] = c
		}
	}
	if len(of) == 0 && len(reply.GetContainers()) > 0 {
		return nil, 0, errNoProcess
	}
	list, err := n.processes.List(ctx, &agentv1.ListProcessesRequest{})
	if err != nil {
		return nil, 0, err
	}
	var samples []stats.Sample
	for _, p := range list.GetProcesses() {
		c, ok := of[p.GetPid()]
		if !ok || isOlder(p, c) {
			continue
		}
		samples = append(samples, stats.Sample{
			Container: containerOf(&runtimev1.ContainerAttributes{Id: c.GetId(), Metadata: c.GetMetadata(), Labels: c.GetLabels()}),
			Taken:     list.GetTaken().AsTime(), Counter: stats.Value(uint64(p.GetCpu().AsDuration())), Memory: stats.Value(p.GetMemoryBytes()),
		})
	}
	return samples, n.cores, nil
}

// isOlder is whether a process was there before the container, and so is another
// with the same number: that of a container with Hyper-V isolation is a number in
// its virtual machine.
func isOlder(p *agentv1.Process, c *runtimev1.Container) bool {
	return p.GetStarted() != nil && time.Unix(0, c.GetCreatedAt()).Sub(p.GetStarted().AsTime()) > clockStep
}
