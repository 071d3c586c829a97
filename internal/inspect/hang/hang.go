// Package hang shows for what the programs of a node wait, for `swdt diag dump`: it gathers the goroutines of containerd,
// its shims, kubelet and kube-proxy and names the operations that do not return.
//
//   - hang.go: a dump and its parts
//   - gather.go, stacks.go, probes.go: gathers a dump of a node
//   - calls.go: the calls to containerd that its log shows as unanswered
//   - analysis.go, operations.go: who waits for whom, from a dump alone
//   - known.go: the published defects that have this form; to add one, add an entry
//   - remedy.go: the remedy with the least harm
//   - compare.go: two dumps of the same programs
//   - file.go: reads a dump, or the goroutines that another tool wrote
//   - text.go: prints dumps
//
// The analysis contacts nothing, so it gives the same result for a file.
package hang

import (
	"time"

	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/format/goroutines"
)

// Format is the first field of a document that Open reads.
const Format = "swdt-dump/1"

// Report is the result of `swdt diag dump`.
type Report struct {
	Format  string    `json:"format"`
	Created time.Time `json:"created"` // by your machine's clock
	Nodes   []Node    `json:"nodes"`
}

// Node is the dump of one node.
type Node struct {
	fleet.Outcome
	Verdict string `json:"verdict"` // one sentence
	Remedy  string `json:"remedy"`  // "" if nothing waits
	Waits   []Wait `json:"waits"`   // the root first: that for which the others wait
	Calls   []Call `json:"calls"`   // to containerd, without an answer, the oldest first
	// Probes are the questions to Windows' services and to containerd.
	Probes    []Probe   `json:"probes"`
	Processes []Process `json:"processes"`
	Problems  []string  `json:"problems"` // what could not be read, with the reason
	// Unread are the programs without whose goroutines it is not known that nothing waits: containerd and its shims.
	Unread []string `json:"unread"`
}

// Kind is the program of a process.
type Kind string

// The programs whose goroutines are read, and the services that they call.
const (
	Containerd Kind = "containerd"
	Shim       Kind = "shim"
	Kubelet    Kind = "kubelet"
	KubeProxy  Kind = "kube-proxy"
	HCSService Kind = "vmcompute"
	HNSService Kind = "hns"
)

// Process is one process of the node.
type Process struct {
	Kind    Kind       `json:"kind"`
	PID     uint32     `json:"pid"`     // 0: unknown
	Started *time.Time `json:"started"` // null: unknown
	Version string     `json:"version"` // "" if unknown
	ID      string     `json:"id"`      // of a shim: the ID of its pod sandbox or container
	Pod     string     `json:"pod"`     // of a shim, as namespace/name; "" if unknown
	// PodInferred: no source names the pod; the shim began while only this pod was being made.
	PodInferred bool `json:"podInferred"`

	Handles uint32 `json:"handles"`
	Threads uint32 `json:"threads"`
	// Source is how the goroutines were read: event, shimdiag, pprof or file; "" for a program that has none.
	Source     string             `json:"source"`
	Error      string             `json:"error"`      // why they are missing
	Silent     bool               `json:"silent"`     // the agent saw that the process accepted the question and did not answer in time
	Goroutines int                `json:"goroutines"` // their number
	Cut        bool               `json:"cut"`        // there are more, which were not read
	Groups     []goroutines.Group `json:"groups"`
}

// Call is a call to containerd that has begun and not ended.
type Call struct {
	Method  string     `json:"method"`  // such as StopPodSandbox
	Subject string     `json:"subject"` // the ID of a pod sandbox or container, an image, or namespace/name of a pod
	Pod     string     `json:"pod"`     // namespace/name; "" if unknown
	Began   *time.Time `json:"began"`   // by the node's clock; null: unknown
	Seconds float64    `json:"seconds"` // since then
}

// Probe is a question to a service of the node, with its deadline.
type Probe struct {
	Name    string  `json:"name"`
	Answers bool    `json:"answers"`
	Seconds float64 `json:"seconds"` // until the answer, or until swdt gave up
	Error   string  `json:"error"`   // the answer was an error
}

// Target is for what a goroutine waits.
type Target string

// The targets, from the deepest: a program that waits for one of the later ones may wait for an earlier one through it.
const (
	OnHCS         Target = "HCS"
	OnHNS         Target = "HNS"
	OnSCM         Target = "SCM"
	OnStorage     Target = "storage"
	OnPipe        Target = "pipe"
	OnRegistry    Target = "registry"
	OnCNI         Target = "CNI plugin"
	OnSnapshotter Target = "snapshotter"
	OnLock        Target = "lock"
	OnExit        Target = "exit" // of a container's process
	OnShim        Target = "shim"
	OnContainerd  Target = "containerd"
	OnLeak        Target = "leak" // nothing is blocked; goroutines pile up
)

func targets() []Target {
	return []Target{OnHCS, OnHNS, OnSCM, OnStorage, OnPipe, OnRegistry, OnCNI, OnSnapshotter, OnLock, OnExit, OnShim, OnContainerd, OnLeak}
}

// Wait is an operation that does not return.
type Wait struct {
	Process   Kind     `json:"process"`
	PID       uint32   `json:"pid"`
	Operation string   `json:"operation"` // such as "HCS: terminate a compute system"
	On        Target   `json:"on"`
	Method    string   `json:"method"`  // the call that it serves, such as StopPodSandbox; "" if unknown
	Minutes   int      `json:"minutes"` // at least, of the oldest goroutine
	Count     int      `json:"count"`   // of goroutines
	Pods      []string `json:"pods"`    // those that it may concern
	// PodsInferred: the pods are those of calls that this wait may serve.
	PodsInferred bool `json:"podsInferred"`

	ID       string  `json:"id"`       // of the shim, or of the container; "" if unknown
	Function string  `json:"function"` // by which it was recognised
	Known    []Known `json:"known"`
}

// Known is a published defect that has the form of a wait.
type Known struct {
	ID     string `json:"id"` // such as kubernetes/kubernetes#75299
	URL    string `json:"url"`
	Text   string `json:"text"`
	Fixed  string `json:"fixed"`  // the versions that have the fix, or why none is named
	Absent bool   `json:"absent"` // the node's version has the fix: this wait has another cause
}
