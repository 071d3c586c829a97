package sample

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/owners"
	"github.com/swdt-dev/swdt/internal/inspect/stats"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
)

// Levels looks at the numbers of a node that should stay the same for hours. A number that cannot be read is left out of a
// look; the others are kept.
type Levels struct {
	node   *node.Node
	client *criclient.Client
}

// NewLevels returns the levels of a node and of its container runtime.
func NewLevels(n *node.Node, client *criclient.Client) *Levels { return &Levels{n, client} }

// components are the programs of a node by the names of their executables.
func components() map[string]string {
	return map[string]string{"kubelet.exe": "kubelet", "containerd.exe": "containerd", "kube-proxy.exe": "kube-proxy",
		"csi-proxy.exe": "csi-proxy", "vmcompute.exe": "vmcompute", "antrea-agent.exe": "antrea-agent", "flanneld.exe": "flanneld",
		"calico-node.exe": "calico-node"}
}

const shimName = "containerd-shim-runhcs-v1.exe"

// whole is the name under which the numbers of the node itself are.
const whole = "node"

// Look returns the numbers. It returns an error if none can be read.
func (l *Levels) Look(ctx context.Context) (stats.Levels, error) {
	found := stats.Levels{Node: l.node.Name, Taken: time.Now()}
	var failed error
	for _, look := range []func(context.Context) ([]stats.Level, error){l.processes, l.machine, l.objects, l.runtime, l.orphans} {
		levels, err := look(ctx)
		if err != nil {
			failed = err
		}
		found.Levels = append(found.Levels, levels...)
	}
	if len(found.Levels) == 0 {
		return found, failed
	}
	return found, ctx.Err()
}

// processes returns the handles, threads and memory of the components, of the service host of HNS, and of all shims together.
func (l *Levels) processes(ctx context.Context) (all []stats.Level, err error) {
	list, err := l.node.Processes.List(ctx, &agentv1.ListProcessesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	hns := uint32(0)
	if service, err := l.node.Services.Get(ctx, &agentv1.GetServiceRequest{Name: "hns"}); err == nil {
		hns = service.GetStatus().GetPid()
	}
	shims, handles, memory := 0, uint64(0), uint64(0)
	for _, p := range list.GetProcesses() {
		name := components()[strings.ToLower(p.GetName())]
		switch {
		case strings.EqualFold(p.GetName(), shimName):
			shims, handles, memory = shims+1, handles+uint64(p.GetHandles()), memory+p.GetMemoryBytes()
			continue
		case hns != 0 && p.GetPid() == hns:
			name = "hns"
		case name == "":
			continue
		}
		instance := strconv.Itoa(int(p.GetPid()))
		all = append(all, stats.Level{Of: name, Measure: stats.Handles, Instance: instance, Value: float64(p.GetHandles())},
			stats.Level{Of: name, Measure: stats.Threads, Instance: instance, Value: float64(p.GetThreads())},
			stats.Level{Of: name, Measure: stats.WorkingSet, Instance: instance, Value: float64(p.GetMemoryBytes())})
	}
	return append(all, level(stats.Shims, float64(shims)),
		stats.Level{Of: "shims", Measure: stats.Handles, Value: float64(handles)},
		stats.Level{Of: "shims", Measure: stats.WorkingSet, Value: float64(memory)}), nil
}

func level(measure string, value float64) stats.Level {
	return stats.Level{Of: whole, Measure: measure, Value: value}
}

func (l *Levels) machine(ctx context.Context) ([]stats.Level, error) {
	facts, err := l.node.Machine.Facts(ctx, &agentv1.FactsRequest{})
	if err != nil {
		return nil, fmt.Errorf("read the node's facts: %w", err)
	}
	return []stats.Level{level(stats.MemoryUsed, float64(facts.GetMemoryBytes())-float64(facts.GetMemoryFreeBytes())),
		level(stats.DiskFree, float64(facts.GetDiskFreeBytes()))}, nil
}

// objects returns how many objects of each kind HNS has.
func (l *Levels) objects(ctx context.Context) (all []stats.Level, err error) {
	for _, kind := range []struct {
		kind    agentv1.ComputeKind
		measure string
	}{
		{agentv1.ComputeKind_COMPUTE_KIND_ENDPOINTS, stats.HNSEndpoints},
		{agentv1.ComputeKind_COMPUTE_KIND_LOADBALANCERS, stats.HNSBalancers},
		{agentv1.ComputeKind_COMPUTE_KIND_NAMESPACES, stats.HNSNamespaces},
	} {
		reply, err := l.node.Compute.Objects(ctx, &agentv1.ComputeRequest{Kind: kind.kind})
		if err != nil {
			return all, fmt.Errorf("list objects of HNS: %w", err)
		}
		all = append(all, level(kind.measure, float64(len(reply.GetObjects()))))
	}
	return all, nil
}

// runtime returns the number of pods and containers, the bytes of images and snapshots, and the memory of containers.
func (l *Levels) runtime(ctx context.Context) (all []stats.Level, err error) {
	pods, err := l.client.Runtime.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	all = append(all, level(stats.Pods, float64(len(pods.GetItems()))))
	if list, err := l.client.Runtime.ListContainers(ctx, &runtimev1.ListContainersRequest{}); err == nil {
		all = append(all, level(stats.Containers, float64(len(list.GetContainers()))))
	}
	if store, err := l.client.Images.ImageFsInfo(ctx, &runtimev1.ImageFsInfoRequest{}); err == nil {
		used := uint64(0)
		for _, f := range store.GetImageFilesystems() {
			used += f.GetUsedBytes().GetValue()
		}
		all = append(all, level(stats.ImageBytes, float64(used)))
	}
	return append(all, l.committed(ctx)...), nil
}

// committed returns the committed memory of the containers whose runtime reports it. Windows limits a container's committed
// memory, not its working set (kubernetes/kubernetes#132945).
func (l *Levels) committed(ctx context.Context) (all []stats.Level) {
	reply, err := l.client.Runtime.ListPodSandboxStats(ctx, &runtimev1.ListPodSandboxStatsRequest{})
	if err != nil {
		return nil // older runtimes have no such call
	}
	for _, pod := range reply.GetStats() {
		for _, c := range pod.GetWindows().GetContainers() {
			if commit := c.GetMemory().GetCommitMemoryBytes(); commit != nil {
				all = append(all, stats.Level{Of: containerOf(c.GetAttributes()).Path(), Measure: stats.Commit,
					Instance: c.GetAttributes().GetId(), Value: float64(commit.GetValue())})
			}
		}
	}
	return all
}

// orphans returns the number of shims without a pod.
func (l *Levels) orphans(ctx context.Context) ([]stats.Level, error) {
	table, err := owners.Gather(ctx, l.node)
	if err != nil {
		return nil, fmt.Errorf("find the owners of processes: %w", err)
	}
	if len(table.Gaps) > 0 { // an owner could be among what is unknown
		return nil, nil
	}
	unowned := 0
	for _, o := range table.Orphans {
		if strings.EqualFold(o.Name, shimName) {
			unowned++
		}
	}
	return []stats.Level{level(stats.ShimsUnowned, float64(unowned))}, nil
}
