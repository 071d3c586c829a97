// Package hcs lists the compute systems of a node's Host Compute Service (HCS) with the
// resources that they use, runs commands and reads files in them, and terminates them.
//
//   - hcs.go: defines the systems, and reads them from a node
//   - owners.go: reads the pods that own the systems from the container runtime
//   - find.go: finds a system or container by its pod or the beginning of its ID
//   - look.go: the systems of a node with their owners
//   - into.go, inside.go: run a command or read a file in a container; stream.go: a command with stdin or a
//     terminal
//   - kill.go: terminates a system
//   - report.go: the output of `swdt hcs list` and `swdt hcs kill`
package hcs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
)

// Isolation is the kind of isolation of a compute system from its node.
type Isolation string

const (
	Process Isolation = "process"
	HyperV  Isolation = "hyper-v"
)

// System is a compute system: a container, or a utility VM that contains containers.
type System struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`  // Container or VirtualMachine
	Owner     string    `json:"owner"` // the program that created the system
	State     string    `json:"state"` // such as Running, Stopped or Created
	Isolation Isolation `json:"isolation"`
	RuntimeID string    `json:"runtimeID"`
	OS        string    `json:"os"`
	// Hosting is the utility VM that contains the container, if the service reports one.
	Hosting string `json:"hosting"`

	// The next three fields are the counters of the service. They are nil if the service
	// did not return them.
	Memory    *Memory       `json:"memory"`
	CPU       *CPU          `json:"cpu"`
	Processes []ProcessInfo `json:"processes"`
	// Failure is the reason why the service did not return the counters; "" if it returned them.
	Failure string `json:"failure"`

	Raw json.RawMessage `json:"raw"` // the service's own JSON document of the system
}

// Memory is memory usage in bytes.
type Memory struct {
	Commit            uint64 `json:"commitBytes"`
	CommitPeak        uint64 `json:"commitPeakBytes"`
	PrivateWorkingSet uint64 `json:"privateWorkingSetBytes"`
}

// CPU is the CPU time that a system has used so far, and the time since the system started.
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

// List returns the compute systems of a node. If the node has no Host Compute Service, the
// error is fault.ErrNotSupported.
func List(ctx context.Context, compute agentv1.ComputeClient) ([]System, error) {
	reply, err := compute.Objects(ctx, &agentv1.ComputeRequest{Kind: agentv1.ComputeKind_COMPUTE_KIND_SYSTEMS})
	if err != nil {
		return nil, err // the error names the attempted operation
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

// tick is the unit in which the service counts time.
const tick = 100 * time.Nanosecond

// wire is the part of the service's JSON document that System contains.
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

// parse reads the summary, and then the properties, which override the summary.
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
	system.setUsage(w)
	return system, nil
}

func (s *System) setUsage(w wire) {
	if statistics := w.Statistics; statistics != nil {
		if m := statistics.Memory; m != nil {
			s.Memory = &Memory{m.MemoryUsageCommitBytes, m.MemoryUsageCommitPeakBytes,
				m.MemoryUsagePrivateWorkingSetBytes}
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
			PID: p.ProcessID, Image: p.ImageName, Started: p.CreateTimestamp,
			CPU:    time.Duration(p.KernelTime100ns+p.UserTime100ns) * tick,
			Commit: p.MemoryCommitBytes, PrivateWorkingSet: p.MemoryWorkingSetPrivateBytes,
		})
	}
}
