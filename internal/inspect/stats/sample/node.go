package sample

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

// Processes lists the processes of a node.
type Processes interface {
	List(ctx context.Context, in *agentv1.ListProcessesRequest, o ...grpc.CallOption) (*agentv1.ListProcessesReply,
		error)
}

// clockStep is the maximum time by which a process may seem older than its container.
const clockStep = 2 * time.Second

// Node is the source that asks Windows for the process of each container. The container
// runtime reports the PID of this process. If a container has several processes, the
// numbers are those of this process alone.
type Node struct {
	runtime   Runtime
	processes Processes
	cores     float64
	details   *details
}

// NewNode returns a source that asks a node for the processes of its runtime's containers.
func NewNode(runtime Runtime, processes Processes, cores float64) *Node {
	return &Node{runtime: runtime, processes: processes, cores: cores, details: newDetails(runtime)}
}

// Source returns stats.Node.
func (n *Node) Source() stats.Source { return stats.Node }

var errNoProcess = errors.New("the runtime reports the process of none of its containers; leave out --source node")

// Ask lists the running containers and the node's processes. It returns an error if the
// runtime reports the process of none of its containers.
func (n *Node) Ask(ctx context.Context) ([]stats.Sample, float64, error) {
	state := &runtimev1.ContainerStateValue{State: runtimev1.ContainerState_CONTAINER_RUNNING}
	running := &runtimev1.ContainerFilter{State: state}
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
		delete(of, p.GetPid()) // only one process has this PID, even if the node lists the PID twice
		samples = append(samples, stats.Sample{
			Container: containerOf(&runtimev1.ContainerAttributes{Id: c.GetId(), Metadata: c.GetMetadata(),
				Labels: c.GetLabels()}),
			Taken: list.GetTaken().AsTime(), Counter: stats.Value(uint64(p.GetCpu().AsDuration())),
			Memory: stats.Value(p.GetMemoryBytes()),
		})
	}
	return samples, n.cores, nil
}

// isOlder reports whether a process is older than the container. Such a process is not the
// container's process, but another process with the same PID: for a container with Hyper-V
// isolation, the runtime reports a PID in the container's virtual machine, and a process of the
// node may have the same PID.
func isOlder(p *agentv1.Process, c *runtimev1.Container) bool {
	return p.GetStarted() != nil && time.Unix(0, c.GetCreatedAt()).Sub(p.GetStarted().AsTime()) > clockStep
}
