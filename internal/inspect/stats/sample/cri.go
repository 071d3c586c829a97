// Package sample has the sources of statistics: a node's container runtime, its kubelet,
// and the node itself.
package sample

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/inspect/stats"
)

// Runtime is the part of the CRI that the sources use.
type Runtime = runtimev1.RuntimeServiceClient

// CRI is the source that asks the container runtime.
type CRI struct {
	runtime Runtime
	cores   float64
	// sandboxes reports whether the statistics of whole pods are requested, in addition to those of
	// containers.
	sandboxes bool

	details *details
}

// NewCRI returns a source that asks the runtime of a node with this number of cores. If sandboxes
// is true, each Ask also requests the statistics of pods with a second call, which changes the
// rates that the runtime reports to the next call.
func NewCRI(runtime Runtime, cores float64, sandboxes bool) *CRI {
	return &CRI{runtime: runtime, cores: cores, sandboxes: sandboxes, details: newDetails(runtime)}
}

// Source returns stats.CRI.
func (c *CRI) Source() stats.Source { return stats.CRI }

// Ask calls ListContainerStats, and ListPodSandboxStats if sandboxes are wanted.
func (c *CRI) Ask(ctx context.Context) ([]stats.Sample, float64, error) {
	reply, err := c.runtime.ListContainerStats(ctx, &runtimev1.ListContainerStatsRequest{})
	if err != nil {
		return nil, 0, fmt.Errorf("ListContainerStats: %w", err)
	}
	samples := make([]stats.Sample, 0, len(reply.GetStats()))
	for _, s := range reply.GetStats() {
		if s.GetCpu() == nil {
			continue // the container has ended
		}
		samples = append(samples, stats.Sample{
			Container: containerOf(s.GetAttributes()),
			Taken:     time.Unix(0, s.GetCpu().GetTimestamp()),
			Reported:  value(s.GetCpu().GetUsageNanoCores()),
			Counter:   value(s.GetCpu().GetUsageCoreNanoSeconds()),
			Memory:    value(s.GetMemory().GetWorkingSetBytes()),
			Limit:     c.details.limit(ctx, s.GetAttributes().GetId(), c.cores),
		})
	}
	if c.sandboxes {
		pods, err := c.askSandboxes(ctx)
		if err != nil {
			return nil, 0, err
		}
		samples = append(samples, pods...)
	}
	return samples, c.cores, nil
}

func (c *CRI) askSandboxes(ctx context.Context) ([]stats.Sample, error) {
	reply, err := c.runtime.ListPodSandboxStats(ctx, &runtimev1.ListPodSandboxStatsRequest{})
	if status.Code(err) == codes.Unimplemented {
		return nil, fmt.Errorf("ListPodSandboxStats: %w; this runtime has no statistics of pods: leave --sandboxes out", err)
	}
	if err != nil {
		return nil, fmt.Errorf("ListPodSandboxStats: %w", err)
	}
	var samples []stats.Sample
	for _, s := range reply.GetStats() {
		cpu := s.GetWindows().GetCpu()
		if cpu == nil {
			continue
		}
		pod := s.GetAttributes()
		samples = append(samples, stats.Sample{
			Container: stats.Container{ID: pod.GetId(), Namespace: pod.GetMetadata().GetNamespace(),
				Pod: pod.GetMetadata().GetName()},
			Taken:    time.Unix(0, cpu.GetTimestamp()),
			Reported: value(cpu.GetUsageNanoCores()), Counter: value(cpu.GetUsageCoreNanoSeconds()),
			Memory: value(s.GetWindows().GetMemory().GetWorkingSetBytes()),
		})
	}
	return samples, nil
}

// containerOf reads the labels that the kubelet sets. For a container without these labels,
// Namespace is empty, and Pod is "-".
func containerOf(a *runtimev1.ContainerAttributes) stats.Container {
	c := stats.Container{
		ID: a.GetId(), Name: a.GetMetadata().GetName(),
		Namespace: a.GetLabels()["io.kubernetes.pod.namespace"], Pod: a.GetLabels()["io.kubernetes.pod.name"],
	}
	if c.Pod == "" {
		c.Pod = "-"
	}
	return c
}

func value(v *runtimev1.UInt64Value) *uint64 {
	if v == nil {
		return nil
	}
	return stats.Value(v.GetValue())
}

// mostKnown bounds the details that are kept, since a hostile runtime can name new
// containers in each of its answers.
const mostKnown = 1 << 15

// details caches the CPU limits and PIDs of containers, which do not change. If the runtime
// does not answer, the next call asks it again.
type details struct {
	runtime Runtime
	mu      sync.Mutex
	known   map[string]detail
}

type detail struct {
	maximum float64 // the limit as a fraction of all cores; 0: no limit
	count   float64 // cores; 0: no limit
	pid     uint32  // 0: not known
}

func newDetails(runtime Runtime) *details {
	return &details{runtime: runtime, known: map[string]detail{}}
}

// limit returns the CPU limit of a container in cores. It returns 0 if there is none, or
// if the runtime does not report it (containerd before 1.7).
func (d *details) limit(ctx context.Context, id string, cores float64) float64 {
	of := d.of(ctx, id)
	if of.maximum > 0 && cores > 0 {
		return of.maximum * cores
	}
	return of.count
}

func (d *details) of(ctx context.Context, id string) detail {
	d.mu.Lock()
	known, ok := d.known[id]
	d.mu.Unlock()
	if ok {
		return known
	}
	reply, err := d.runtime.ContainerStatus(ctx, &runtimev1.ContainerStatusRequest{ContainerId: id, Verbose: true})
	if err != nil {
		return detail{} // the next call asks again
	}
	windows := reply.GetStatus().GetResources().GetWindows()
	known = detail{maximum: float64(windows.GetCpuMaximum()) / 10_000, count: float64(windows.GetCpuCount())}
	var info struct {
		PID uint32 `json:"pid"`
	}
	// The PID stays unknown if the runtime does not report it in this form.
	if json.Unmarshal([]byte(reply.GetInfo()["info"]), &info) == nil {
		known.pid = info.PID
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= mostKnown {
		clear(d.known)
	}
	d.known[id] = known
	return known
}
