package netprobe

import "time"

const (
	// Version is the version of the messages.
	Version = 1
	// MaxLine bounds a message, in bytes.
	MaxLine = 1 << 20
	// MaxTargets bounds the targets of a round, so that its answer fits into MaxLine.
	MaxTargets = 4096
	// MaxName bounds the name of a pod, in bytes.
	MaxName = 128
	// MaxTimeout bounds an attempt.
	MaxTimeout = 10 * time.Second
)

// Request is a message to the probe. One of its fields is set.
type Request struct {
	Serve *Serve `json:"serve,omitempty"`
	Round *Round `json:"round,omitempty"`
	Load  *Load  `json:"load,omitempty"`
}

// Serve asks for servers. Their answers name the pod.
type Serve struct {
	Name    string `json:"name"`    // of the pod
	Address string `json:"address"` // of the pod: its servers listen there, and its attempts come from there
	Ports   []Port `json:"ports"`
}

// Port is a port of a pod.
type Port struct {
	Number   int32  `json:"port"`
	Protocol string `json:"protocol"` // TCP or UDP; SCTP is reported as unsupported
}

// Round asks for one attempt to reach each target. All attempts run at the same time.
type Round struct {
	TimeoutMS int64    `json:"timeoutMs"` // bounds each attempt
	Targets   []Target `json:"targets"`
}

// Target is a port of another pod.
type Target struct {
	Port
	Name    string `json:"name"` // of the pod that must answer
	Address string `json:"address"`
}

// Reply is the answer to a request. Error is set if the request could not be obeyed.
type Reply struct {
	Version int      `json:"version"`
	Error   string   `json:"error,omitempty"`
	Served  []Served `json:"served,omitempty"`  // in the order of the request's ports
	Results []Result `json:"results,omitempty"` // in the order of the request's targets
	Loaded  *Loaded  `json:"loaded,omitempty"`
}

// Served is the state of a server.
type Served struct {
	Error       string `json:"error,omitempty"`       // why the port is not served; "" if it is
	Unsupported bool   `json:"unsupported,omitempty"` // the probe does not have the protocol
}

// Load asks for memory, and then for CPU time. If the system refuses the memory, the probe ends.
type Load struct {
	Threads int   `json:"threads"` // the number of threads that are busy
	MS      int64 `json:"ms"`      // for how long
	Bytes   int64 `json:"bytes"`   // the memory to allocate and to write to, which the probe keeps
}

// Loaded has the CPU time and the memory that a load got.
type Loaded struct {
	CPUMS  int64 `json:"cpuMs"`  // the CPU time that the probe used while its threads were busy
	WallMS int64 `json:"wallMs"` // how long that took
	Bytes  int64 `json:"bytes"`
}

// Outcomes of an attempt.
const (
	Connected   = "connected"   // the server of the pod answered
	Timeout     = "timeout"     // nothing answered in time
	Refused     = "refused"     // the attempt was rejected, such as by a TCP reset
	Unreachable = "unreachable" // the network or the pod's own system rejected the attempt
	Wrong       = "wrong"       // another server answered
	Failed      = "failed"      // the attempt could not be made
)

// Outcomes returns all outcomes.
func Outcomes() []string { return []string{Connected, Timeout, Refused, Unreachable, Wrong, Failed} }

// Result is the result of an attempt.
type Result struct {
	Outcome string `json:"outcome"`
	MS      int64  `json:"ms"`             // how long the attempt took
	Seen    string `json:"seen,omitempty"` // the address from which the server saw the attempt come
	Text    string `json:"text,omitempty"` // more about a failure
}
