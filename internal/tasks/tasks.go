// Package tasks says whose the processes of a node are: pod, container, task and
// shim as the container runtime has them, services as the Service Control Manager
// has them, and what belongs to nobody.
//
//   - tasks.go: the table
//   - observe.go: what the node is asked
//   - runtime.go: what its container runtime is asked
//   - assign.go: who has which process; all rules, over what was answered
//   - tree.go: processes by parent and session, neither of which is always true
//   - known.go: services and folders of a node; the tables to extend
package tasks

import (
	"context"
	"time"

	"github.com/swdt-dev/swdt/internal/node"
)

// Table is every process of a node, once, with whom it belongs to.
type Table struct {
	Taken         time.Time `json:"taken"`         // by the node's clock
	WindowSeconds float64   `json:"windowSeconds"` // which a process's cores are the mean of
	Pods          []Pod     `json:"pods"`
	Services      []Service `json:"services"`
	// Orphans belong to nobody: shims of pods that the runtime does not know,
	// programs of the runtime whose starter is gone.
	Orphans []Orphan `json:"orphans"`
	// Unsettled may be orphans, or of a pod that is being made right now.
	Unsettled []Orphan  `json:"unsettled"`
	Others    []Process `json:"others"`
	// Gaps say what could not be asked. Where the runtime did not answer, pods are
	// what shims say of themselves, and orphaned shims are not to be told.
	Gaps []string `json:"gaps"`
}

// Pod is a pod sandbox.
type Pod struct {
	Namespace  string      `json:"namespace,omitempty"`
	Name       string      `json:"name,omitempty"`
	ID         string      `json:"id"`
	State      string      `json:"state"` // ready, notready; unknown: the runtime did not answer
	Handler    string      `json:"runtimeHandler,omitempty"`
	Created    time.Time   `json:"created,omitzero"`
	Shims      []Process   `json:"shims"`
	Sandbox    []Process   `json:"sandbox"` // of the sandbox itself
	Containers []Container `json:"containers"`
}

// Path is NAMESPACE/NAME, and of a pod that has no name its ID.
func (p Pod) Path() string {
	if p.Name == "" {
		return p.ID
	}
	return p.Namespace + "/" + p.Name
}

// Container is one of a pod's. Those that have ended have no processes.
type Container struct {
	Name      string    `json:"name"`
	ID        string    `json:"id"`
	Image     string    `json:"image"`
	State     string    `json:"state"` // created, running, exited, unknown
	Attempt   uint32    `json:"attempt"`
	Task      uint32    `json:"taskPid,omitempty"` // as the runtime tells it
	Processes []Process `json:"processes"`
}

// Service is a Windows service of a node of Kubernetes. Its own process is the
// first; then come those that it started.
type Service struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	Processes []Process `json:"processes"`
}

// Orphan is a process that nobody has.
type Orphan struct {
	Process
	Sandbox string `json:"sandbox,omitempty"` // that a shim says it is for
	Why     string `json:"why"`
}

// Process is a process of Windows.
type Process struct {
	PID       uint32    `json:"pid"`
	ParentPID uint32    `json:"parentPid"` // may be that of another process by now
	Name      string    `json:"name"`
	Image     string    `json:"image,omitempty"`
	Started   time.Time `json:"started,omitzero"`
	// UptimeSeconds is by the node's clock.
	UptimeSeconds float64  `json:"uptimeSeconds"`
	CPUSeconds    float64  `json:"cpuSeconds"`      // since it started
	Cores         *float64 `json:"cores,omitempty"` // over the window; nil: it is younger
	MemoryBytes   uint64   `json:"memoryBytes"`     // working set
	Handles       uint32   `json:"handles"`
	Threads       uint32   `json:"threads"`
	Session       uint32   `json:"session"`
	CommandLine   string   `json:"commandLine,omitempty"` // may hold a secret
}

// Gather asks a node once. It takes a little longer than DefaultWindow.
func Gather(ctx context.Context, n *node.Node) (Table, error) {
	return NewObserver(n, Options{}).Look(ctx)
}
