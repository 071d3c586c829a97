// Package owners finds the owner of each process of a node: the pod, container or shim
// that the container runtime reports, the service that the Service Control Manager
// reports, or no owner.
//
//   - owners.go: the table
//   - observe.go: asks the node
//   - runtime.go: asks the node's container runtime
//   - assign.go: assigns each process to its owner; it has all rules, and sends no
//     requests
//   - tree.go: processes by parent and session; neither is always reliable
//   - known.go: services and folders of a node; the tables to extend
//   - report.go, rows.go, live.go: print the output of `swdt ps`, once or repeatedly
package owners

import (
	"time"
)

// Table lists every process of a node once, under its owner.
type Table struct {
	Taken         time.Time `json:"taken"`         // by the node's clock
	WindowSeconds float64   `json:"windowSeconds"` // Process.Cores is the mean over this time
	Pods          []Pod     `json:"pods"`
	Services      []Service `json:"services"`
	// Orphans have no owner although they should have one: shims of pods that the
	// runtime does not list, and programs of the runtime whose parent has exited.
	Orphans []Orphan `json:"orphans"`
	// Unsettled are new processes without an owner: they may be orphans, or belong to a pod
	// that is being created.
	Unsettled []Orphan  `json:"unsettled"`
	Others    []Process `json:"others"`
	// Gaps are the requests that were not answered. If the runtime did not answer, pods
	// are known only from the command lines of shims, and orphaned shims cannot be
	// distinguished from others.
	Gaps []string `json:"gaps"`
}

// Pod is a pod sandbox.
type Pod struct {
	Namespace  string      `json:"namespace"`
	Name       string      `json:"name"`
	ID         string      `json:"id"`
	State      string      `json:"state"` // ready or notready; unknown: the runtime did not answer
	Handler    string      `json:"runtimeHandler"`
	Created    *time.Time  `json:"created"` // nil: not known
	Shims      []Process   `json:"shims"`
	Sandbox    []Process   `json:"sandbox"` // the processes of the pod sandbox itself
	Containers []Container `json:"containers"`
}

// Path returns NAMESPACE/NAME, or the ID if the pod's name is unknown.
func (p Pod) Path() string {
	if p.Name == "" {
		return p.ID
	}
	return p.Namespace + "/" + p.Name
}

// Container is a container of a pod. A container that has exited has no processes.
type Container struct {
	Name      string    `json:"name"`
	ID        string    `json:"id"`
	Image     string    `json:"image"`
	State     string    `json:"state"` // created, running, exited or unknown
	Attempt   uint32    `json:"attempt"`
	Task      uint32    `json:"taskPid"` // ID of the first process; 0 if the runtime reports none
	Processes []Process `json:"processes"`
}

// Service is a Windows service of a Kubernetes node. In Processes, the service's own process comes
// first, then the processes that the service started.
type Service struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	Processes []Process `json:"processes"`
}

// Orphan is a process without an owner.
type Orphan struct {
	Process
	Sandbox string `json:"sandbox"` // the pod sandbox on the command line of a shim; "" for other programs
	Why     string `json:"why"`
}

// Process is a process of Windows.
type Process struct {
	PID       uint32 `json:"pid"`
	ParentPID uint32 `json:"parentPid"` // Windows may have reused this number after the parent exited
	Name      string `json:"name"`
	Image     string `json:"image"`
	// Started is nil if access to the process is denied.
	Started *time.Time `json:"started"`
	// UptimeSeconds is measured by the node's clock.
	UptimeSeconds float64  `json:"uptimeSeconds"`
	CPUSeconds    float64  `json:"cpuSeconds"`  // CPU time since the process started
	Cores         *float64 `json:"cores"`       // mean over the window; nil if the process started within the window, and from Gather
	MemoryBytes   uint64   `json:"memoryBytes"` // working set
	Handles       uint32   `json:"handles"`
	Threads       uint32   `json:"threads"`
	Session       uint32   `json:"session"`
	CommandLine   string   `json:"commandLine"` // may contain a secret
}
