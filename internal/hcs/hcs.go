// Package hcs is the host's side of Windows' Host Compute Service: which compute
// systems a node has, what they use, and reading, running and ending something in
// one of them.
//
//   - hcs.go: the systems, and reading them from a node
//   - owners.go: the pods that they belong to, as the container runtime tells
//   - find.go: one of them, by its pod or the beginning of its ID
//   - inside.go: a command or a file in a container
//   - kill.go: ending one
package hcs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
)

// Isolation is what keeps a compute system apart from its node.
type Isolation string

const (
	Process Isolation = "process"
	HyperV  Isolation = "hyper-v"
)

// System is a compute system: a container, or a utility VM that containers are in.
type System struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`  // Container, VirtualMachine
	Owner     string    `json:"owner"` // the program that made it
	State     string    `json:"state"` // Running, Stopped, Created…
	Isolation Isolation `json:"isolation"`
	RuntimeID string    `json:"runtimeID,omitempty"`
	OS        string    `json:"os,omitempty"`
	// Hosting is the utility VM that a container is in, where the service says so.
	Hosting string `json:"hosting,omitempty"`

	// What follows is as the service counts it; nil where it did not tell.
	Memory    *Memory       `json:"memory,omitempty"`
	CPU       *CPU          `json:"cpu,omitempty"`
	Processes []ProcessInfo `json:"processes,omitempty"`
	// Failure is why it did not tell.
	Failure string `json:"failure,omitempty"`

	Raw json.RawMessage `json:"raw,omitempty"` // the service's own document
}

// Memory in bytes.
type Memory struct {
	Commit            uint64 `json:"commitBytes"`
	CommitPeak        uint64 `json:"commitPeakBytes"`
	PrivateWorkingSet uint64 `json:"privateWorkingSetBytes"`
}

// CPU time used so far.
type CPU struct {
	Total  time.Duration `json:"totalNanoseconds"`
	Kernel time.Duration `json:"kernelNanoseconds"`
	Uptime time.Duration `json:"uptimeNanoseconds"`
}

// ProcessInfo is a process in a compute system.
type ProcessInfo struct {
	PID               uint32        `json:"pid"`
	Image             string        `json:"image"`
	Started           time.Time     `json:"started"`
	CPU               time.Duration `json:"cpuNanoseconds"`
	Commit            uint64        `json:"commitBytes"`
	PrivateWorkingSet uint64        `json:"privateWorkingSetBytes"`
}

// List asks a node for its compute systems. A Windows without the service is
// host.ErrNotSupported.
func List(ctx context.Context, compute agentv1.ComputeClient) ([]System, error) {
	reply, err := compute.Objects(ctx, &agentv1.ComputeRequest{Kind: host.HCSSystems})
	if err != nil {
		return nil, err // it says what was attempted
	}
	systems := []System{}
	for _, s := range reply.GetObjects() {
		system, err := parse(s)
		if err != nil {
			return nil, err
		}
		systems = append(systems, system)
	}
	slices.SortFunc(systems, func(a, b System) int { return cmp.Compare(a.ID, b.ID) })
	return systems, nil
}

// tick is what the service counts time in.
const tick = 100 * time.Nanosecond

// wire is the service's own document.
type wire struct {
	SystemType, Owner, State, RuntimeID, RuntimeOsType, HostingSystemID string
	Statistics                                                          *struct {
		Uptime100ns uint64
		Memory      *struct {
			MemoryUsageCommitBytes, MemoryUsageCommitPeakBytes, MemoryUsagePrivateWorkingSetBytes uint64
		}
		Processor *struct{ TotalRuntime100ns, RuntimeKernel100ns uint64 }
	}
	ProcessList []struct {
		CreateTimestamp                                 time.Time
		ImageName                                       string
		ProcessID                                       uint32 `json:"ProcessId"`
		KernelTime100ns, UserTime100ns                  uint64
		MemoryCommitBytes, MemoryWorkingSetPrivateBytes uint64
	}
}

// parse reads the summary, and over it the properties.
func parse(s *agentv1.ComputeObject) (System, error) {
	var w wire
	raw := s.GetDocument()
	for _, document := range [][]byte{s.GetDocument(), s.GetProperties()} {
		if len(document) == 0 {
			continue
		}
		if err := json.Unmarshal(document, &w); err != nil {
			return System{}, fmt.Errorf("read compute system %s: %w: %.200s", s.GetId(), err, document)
		}
		raw = document
	}
	system := System{
		ID: s.GetId(), Type: w.SystemType, Owner: w.Owner, State: w.State, Isolation: Process,
		RuntimeID: w.RuntimeID, OS: w.RuntimeOsType, Hosting: w.HostingSystemID, Failure: s.GetFailure(),
	}
	system.Raw = append(system.Raw, raw...)
	if w.SystemType == "VirtualMachine" || w.HostingSystemID != "" {
		system.Isolation = HyperV
	}
	system.uses(w)
	return system, nil
}

func (s *System) uses(w wire) {
	if statistics := w.Statistics; statistics != nil {
		if m := statistics.Memory; m != nil {
			s.Memory = &Memory{m.MemoryUsageCommitBytes, m.MemoryUsageCommitPeakBytes, m.MemoryUsagePrivateWorkingSetBytes}
		}
		if p := statistics.Processor; p != nil {
			s.CPU = &CPU{
				Total: time.Duration(p.TotalRuntime100ns) * tick, Kernel: time.Duration(p.RuntimeKernel100ns) * tick,
				Uptime: time.Duration(statistics.Uptime100ns) * tick,
			}
		}
	}
	for _, p := range w.ProcessList {
		s.Processes = append(s.Processes, ProcessInfo{
			PID: p.ProcessID, Image: p.ImageName, Started: p.CreateTimestamp, CPU: time.Duration(p.KernelTime100ns+p.UserTime100ns) * tick,
			Commit: p.MemoryCommitBytes, PrivateWorkingSet: p.MemoryWorkingSetPrivateBytes,
		})
	}
}
