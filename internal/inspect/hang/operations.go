package hang

import (
	"regexp"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/goroutines"
)

// operation names the work of a goroutine, by its functions.
type operation struct {
	text     string
	on       Target
	after    int // minutes until it counts as a hang
	function string
}

// form recognises one function, and names the operation. The first submatch of the pattern goes into the text.
type form struct {
	function *regexp.Regexp
	text     string // with %s for the operation's name
	on       Target
	after    int
	in       Kind // "": any
}

// forms are the functions that block, as of containerd 1.6 … 2.4, hcsshim 0.9 … 0.15, ttrpc 1.2, go-winio 0.6 and
// Kubernetes 1.14 … 1.37. The innermost function that one of them recognises names the operation.
func forms() []form {
	of := regexp.MustCompile
	return []form{
		// hcsshim/internal/{vmcompute,hcs}/zsyscall_windows.go
		{of(`(?i:hcsshim)/.*\.(?:_?hcs|Hcs)([A-Z]\w*)(?:\.func\d+)?$`), "HCS: %s", OnHCS, 1, ""},
		// hcsshim/hcn/zsyscall_windows.go; hcsshim/internal/hns/hnsfuncs.go, the older interface
		{of(`(?i:hcsshim)/hcn\._?hcn([A-Z]\w*)$`), "HNS: %s", OnHNS, 1, ""},
		{of(`(?i:hcsshim)/internal/hns\._*(hnsCall)\w*$`), "HNS: %s", OnHNS, 1, ""},
		// hcsshim/internal/wclayer; hcsshim/computestorage is among the first
		{of(`(?i:hcsshim)/internal/wclayer\._?([A-Za-z]+(?:Layer|Vhd|Disk|Sandbox|File)\w*)$`), "storage: %s", OnStorage, 1, ""},
		// hcsshim/internal/cmd/io_npipe.go: it dials the pipe of a container's output again, for ever
		{of(`\(\*(nPipeRetryWriter)\)`), "write the output of a container to its pipe (%s)", OnPipe, 1, Shim},
		// go-winio/pipe.go
		{of(`\(\*win32PipeListener\)\.(Close)$`), "close a pipe (%s)", OnPipe, 1, ""},
		// containerd/ttrpc/client.go
		{of(`ttrpc\.\(\*Client\)\.(createStream)$`), "send a request to a shim (%s)", OnShim, 1, Containerd},
		{of(`\(\*\w*askClient\)\.(\w+)$`), "shim: %s", OnShim, 1, Containerd},
		// containerd/runtime/v2/binary.go, core/runtime/v2/binary.go
		{of(`runtime/v2\.\(\*binary\)\.(Start|Delete)$`), "run the shim's program: %s", OnShim, 1, Containerd},
		// containernetworking/cni/pkg/invoke/raw_exec.go
		{of(`cni/pkg/invoke\.\(\*RawExec\)\.(ExecPlugin)$`), "run the CNI plugin (%s)", OnCNI, 1, Containerd},
		// containerd/go-cni/cni.go: the call waits for goroutines that run the plugins
		{of(`go-cni\.\(\*libcni\)\.(attachNetworks|Setup\w*|Remove|Check)$`), "run the CNI plugin (%s)", OnCNI, 1, Containerd},
		// containerd/snapshots/{windows,proxy}, plugins/snapshots/windows, core/snapshots/proxy
		{of(`/snapshots/\w+\.\(\*\w*[sS]napshotter\)\.([A-Z]\w*)$`), "snapshotter: %s", OnSnapshotter, 1, Containerd},
		// containerd/remotes/docker, core/remotes/docker
		{of(`/remotes/docker\.\(?\*?(\w+)`), "pull an image (%s)", OnRegistry, 10, Containerd},
		// containerd/pkg/cri/server/container_stop.go: the grace period of the pod is part of this wait
		{of(`\(\*criService\)\.(waitContainerStop|waitSandboxStop)$`), "wait until a container ends (%s)", OnExit, 5, Containerd},
	}
}

// idle recognises functions that wait as long as a container or the program lives. A goroutine with one of them is not
// blocked.
func idle() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`\(\*\w*askClient\)\.Wait$`,
		`\.\(\*service\)\.(waitInternal|Wait)$`,
		`\.\(\*System\)\.waitBackground$`,
		`\.waitForContainerExit(\.func\d+)?$`,
		`\.waitInitExit(\.func\d+)?$`,
		`\.waitForHostUVMExit$`,
		`\.setupDumpStacks\.func\d+$`,
		`\.getQueuedCompletionStatus$`,
		`\(\*instrumentedService\)\.(GetContainerEvents|Exec|Attach|PortForward)$`,
		`\(\*remoteRuntimeService\)\.(GetContainerEvents|Exec|Attach|PortForward|containerEvents\w*)$`,
	}, "|"))
}

// These recognise the calls that a goroutine serves or makes.
var (
	servedByContainerd = regexp.MustCompile(`\.\(\*instrumented(?:Alpha)?Service\)\.([A-Z]\w*)$`)
	servedByShim       = regexp.MustCompile(`^main\.\(\*service\)\.(\w+)Internal$`)
	madeByKubelet      = regexp.MustCompile(`\.\(\*remote(?:Runtime|Image)Service\)\.([A-Z]\w*)$`)
	ofPlugin           = regexp.MustCompile(`libcni\.\(\*CNIConfig\)\.(?i:(add|del|check|gc|status))\w*$`)
)

// slow are calls that take long without a defect, with the minutes until they count as a hang.
func slow(method string) int {
	switch method {
	case "PullImage":
		return 10
	case "StopContainer", "StopPodSandbox", "ExecSync": // grace periods, and commands of probes and hooks
		return 5
	}
	return 1
}

// recogniser names the operations of goroutines.
type recogniser struct {
	forms []form
	idle  *regexp.Regexp
}

func newRecogniser() recogniser { return recogniser{forms(), idle()} }

// operation returns what the goroutines of a group do, and the call that they serve; ok is false if they are not blocked.
func (r recogniser) operation(kind Kind, g goroutines.Group) (op operation, method string, ok bool) {
	method = methodOf(kind, g.Frames)
	for _, f := range g.Frames {
		if r.idle.MatchString(f) {
			return op, "", false
		}
		for _, form := range r.forms {
			if form.in != "" && form.in != kind {
				continue
			}
			if m := form.function.FindStringSubmatch(f); m != nil {
				name := words(m[1])
				if form.on == OnCNI {
					name = commandOf(m[1], g.Frames)
				}
				op = operation{strings.ReplaceAll(form.text, "%s", name), form.on, form.after, f}
				if method == "PullImage" || has(g, "unpack.(*Unpacker)") || has(g, "/diff/windows.") {
					op.after = slow("PullImage") // the layers of Windows take minutes
				}
				if op.on == OnShim && isLock(g) {
					op.text += ", behind a lock"
				}
				return op, method, true
			}
		}
	}
	switch {
	case isLock(g):
		f := holder(g.Frames)
		return operation{"wait for a lock in " + short(f), OnLock, 1, f}, method, true
	case kind == Kubelet && method != "":
		return operation{"containerd: " + method, OnContainerd, slow(method), method}, method, true
	case kind == Shim && method != "":
		return operation{"serve the task's " + method, OnShim, slow(method), method}, method, true
	case kind == Containerd && method != "":
		return operation{"serve " + method, OnExit, slow(method), method}, method, true
	}
	return op, "", false
}

// methodOf returns the call that a goroutine serves or makes; "" if none is known.
func methodOf(kind Kind, frames []string) string {
	of := map[Kind]*regexp.Regexp{Containerd: servedByContainerd, Shim: servedByShim, Kubelet: madeByKubelet}[kind]
	if of == nil {
		return ""
	}
	for _, f := range frames {
		if m := of.FindStringSubmatch(f); m != nil {
			return strings.ToUpper(m[1][:1]) + m[1][1:]
		}
	}
	return ""
}

// commandOf returns the command of a CNI plugin that a goroutine runs, such as ADD.
func commandOf(function string, frames []string) string {
	switch function {
	case "attachNetworks", "Setup", "SetupSerially":
		return "ADD"
	case "Remove":
		return "DEL"
	case "Check":
		return "CHECK"
	}
	for _, f := range frames {
		if m := ofPlugin.FindStringSubmatch(f); m != nil {
			return strings.ToUpper(m[1])
		}
	}
	return "command unknown"
}

// words returns the name of a function of Windows or of a request in words: "terminate compute system" for
// TerminateComputeSystem.
func words(name string) string {
	var out strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' && i > 0 && (name[i-1] < 'A' || name[i-1] > 'Z') {
			out.WriteByte(' ')
		}
		out.WriteRune(c)
	}
	return strings.ToLower(out.String())
}

// isLock reports whether goroutines wait for a lock. Go before 1.19 says only semacquire, also for a WaitGroup.
func isLock(g goroutines.Group) bool {
	switch g.State {
	case "sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock":
		return true
	case "semacquire":
		for _, f := range g.Frames {
			if f == "sync.(*Mutex).Lock" || f == "sync.(*Mutex).lockSlow" || f == "sync.(*RWMutex).Lock" || f == "sync.(*RWMutex).RLock" {
				return true
			}
		}
	}
	return false
}

// holder returns the function that asked for the lock.
func holder(frames []string) string {
	for _, f := range frames {
		if !strings.HasPrefix(f, "sync.") && !strings.HasPrefix(f, "internal/sync.") && !strings.HasPrefix(f, "runtime.") {
			return f
		}
	}
	return "an unknown function"
}

// short returns a function without the path of its package.
func short(function string) string { return function[strings.LastIndexByte(function, '/')+1:] }
