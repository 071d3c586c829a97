// Package simulated is an in-memory Windows: one *Machine implements every
// interface of package platform, on every OS, with faults on demand.
//
// A Machine has a C: drive with Windows' rules (names ignore case, a running
// executable can be renamed but not deleted), a registry, a Service Control
// Manager with services that are processes, optional features, a firewall,
// named pipes and a network. The code that runs when an executable is started
// depends on the file's content: a synthetic executable of Binary, a Go program
// built for Windows, the agent, or anything that a test registers as a Program.
//
// Every change that a process requests through package platform passes
// OnOperation's hook before and after it happens, so that a test can record a
// run once and then repeat the run with a failure, a killed process or a power
// cut at each point.
//
// Files: processes in process.go, the disk in files.go and handles.go, the SCM in services.go, lifecycle.go, controls.go,
// recovery.go and shutdown.go, its registrations on the disk in hive.go, programs in program.go, the contents of a fresh
// machine in preset.go, the state of a machine that is off in saved.go, faults in operation.go, and sysprep in sysprep.go.
// All times are those of package time, so a Machine that is created inside a testing/synctest bubble uses the bubble's
// clock.
package simulated

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/imitation/criserver"
)

// Preset is the contents of a fresh machine.
type Preset string

const (
	// Node is a Kubernetes node: containerd, kubelet and kube-proxy installed
	// and running. The default.
	Node Preset = "node"
	// Member is a Node that has joined a cluster and is well maintained: doctor
	// has no findings about it.
	Member Preset = "member"
	// Minimal is a plain Windows without anything of Kubernetes.
	Minimal Preset = "minimal"
)

// AgentMain is the agent's main function: the caller passes it, since nothing
// under internal/platform imports the agent.
type AgentMain func(ctx context.Context, p *platform.Platform, executable string, args []string,
	stdin io.Reader, stdout, stderr io.Writer) int

// Agent is the agent as a program of the machine: an executable with this
// SHA-256 (hex) runs Main.
type Agent struct {
	Hash string
	Main AgentMain
}

// Options configure a machine. The zero value is a realistic node.
type Options struct {
	Hostname string // default: win-node
	Preset   Preset // default: Node
	Agent    *Agent // Register(AgentProgram(…)) adds further agents
	Programs []Program
	// Architecture is the processor architecture, as GOARCH; default amd64.
	Architecture string
	// Disk is the capacity of C: in bytes; default 64 GiB. Only written bytes
	// use memory.
	Disk int64
	// ReFS makes C: a volume of ReFS, on which only the upper halves of the IDs of files differ.
	ReFS bool
	// SlowDelete makes C: keep the name of a removed file until its last handle closes, as NTFS does before Windows 10 1903,
	// so also in Windows Server 2019 (dotnet/corefx#38186).
	SlowDelete bool
	// Images are pulled into containerd, in addition to the images of the preset.
	Images []criserver.Image
	// Pods is the number of pods that a node's containerd runs; default 1.
	Pods int
	// Internet connects the machine to the internet, so that packages of Chocolatey and container
	// images can be downloaded.
	Internet bool
	// RealNetwork lets the machine reach all addresses that the computer reaches on which the
	// simulation runs, with real connections. Without it, the machine reaches only loopback addresses.
	RealNetwork bool
	// Dial makes these real connections; nil: through the network of the computer on which the simulation runs.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// StartDelay and StopDelay are how long a service is start pending and stop pending. ExitDelay
	// is how long its process runs on after the service has reported "stopped". RebootDelay is how
	// long a requested reboot waits; its default is 200 ms, so that the reply reaches the caller.
	// BootDelay is how long the machine is down during a reboot. The default of the other delays is
	// 5 ms; a negative delay means none.
	StartDelay, StopDelay, ExitDelay, RebootDelay, BootDelay time.Duration
	// Saved is the state of an earlier machine. It replaces Preset and, unless that machine was
	// generalised, also Hostname.
	Saved *Saved
	// OnRestart is called when a requested restart has switched the machine off. The caller then
	// saves the state of the machine, restarts the computer on which the simulation runs, and
	// creates the machine anew. OnRestart must not wait for Close. Nil: the machine boots by
	// itself.
	OnRestart func()
	// OnShutdown is called when a requested shutdown has switched the machine off. The machine then
	// stays off. OnShutdown must not wait for Close. Nil: nothing is called.
	OnShutdown func()
	// Log receives the events of the machine; nil: none.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Saved != nil {
		o.Preset = o.Saved.state.Preset
		if !o.Saved.Generalized() {
			o.Hostname = o.Saved.state.Hostname
		} else if o.Hostname == "" {
			o.Hostname = randomHostname()
		}
	}
	if o.Hostname == "" {
		o.Hostname = "win-node"
	}
	if o.Preset == "" {
		o.Preset = Node
	}
	if o.Architecture == "" {
		o.Architecture = "amd64"
	}
	if o.Disk == 0 {
		o.Disk = 64 << 30
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.RebootDelay == 0 {
		o.RebootDelay = 200 * time.Millisecond
	}
	for _, d := range []*time.Duration{&o.StartDelay, &o.StopDelay, &o.ExitDelay, &o.RebootDelay, &o.BootDelay} {
		switch {
		case *d == 0:
			*d = 5 * time.Millisecond
		case *d < 0:
			*d = 0
		}
	}
	return o
}

// Machine is one simulated Windows machine.
type Machine struct {
	options Options
	running sync.WaitGroup // every goroutine that the machine started

	// mu guards all fields below and everything that they refer to. It is never
	// held while a hook, a program or a timer runs.
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced whenever a state changes
	busy     bool          // the SCM waits for a handler
	closed   bool
	disk     *disk
	hive     hive
	registry *registryKey
	features map[string]*feature
	firewall []platform.FirewallRule
	services map[string]*service
	boot     *boot // nil while the machine is down
	boots    int
	created  int // number of services that were ever registered

	processes map[uint32]*process
	lastPID   uint32
	listeners map[string]*listener // listeners by address, such as 127.0.0.1:10248
	pipes     map[string]*pipe     // by lower-case path
	around    surroundings
	ip        ipSettings
	// tamperProtection makes Microsoft Defender ignore changes of its exclusions.
	tamperProtection bool
	// alterFacts is the function that SetFacts set; nil: none.
	alterFacts func(*platform.Facts)

	programs []Program
	blocked  []blocking // see Block
	scripts  []ScriptFunc
	commands []Ran
	events   []LoggedEvent
	choco    *chocoState
	// ended has the IDs of the compute systems that were terminated.
	ended map[string]bool
	// removed records the pods and images that containerd was asked to remove.
	removed criserver.Removed
	// pulled has the images that containerd was asked to pull.
	pulled criserver.Pulled

	hook       func(Operation) Verdict
	intruder   func(Operation)
	operations []Operation
	seq        int
	seen       map[string]int
	broadcasts int
}

// A boot is the time from one start of the machine to its end.
type boot struct {
	id      string
	started time.Time
	ctx     context.Context
	cancel  context.CancelFunc
	first   bool // set for the boot within New, in which nothing is delayed
	svchost *process
	// environment has the machine's variables as services.exe has read them.
	environment []string
	// shuttingDown is set from the beginning of an orderly shutdown on.
	shuttingDown bool
	// pods are the runtime's pods, which outlive the runtime's process. Nil: the runtime has not
	// run since this boot.
	pods *criserver.Workload
}

// New returns a machine that has booted: each automatic service has started or has failed to start.
// End the machine with Close.
func New(o Options) *Machine {
	m := &Machine{
		options:   o.withDefaults(),
		changed:   make(chan struct{}),
		registry:  newRegistryKey(""),
		features:  map[string]*feature{},
		services:  map[string]*service{},
		processes: map[uint32]*process{},
		listeners: map[string]*listener{},
		pipes:     map[string]*pipe{},
		around:    surroundings{names: map[string][]string{}, outcomes: map[string]platform.ReachOutcome{}},
		ip:        usualIPSettings(),
		choco:     newChocoState(),
		ended:     map[string]bool{},
		seen:      map[string]int{},
		lastPID:   4,
	}
	m.disk = newDisk(m.options.Disk, m.options.ReFS)
	m.disk.slowDelete = m.options.SlowDelete
	m.programs = append(m.programs, builtinProgram(m.options.Architecture))
	if o.Agent != nil {
		m.Register(AgentProgram(*o.Agent))
	}
	for _, p := range o.Programs {
		m.Register(p)
	}
	m.install()
	if o.Saved != nil {
		m.restore(o.Saved.state)
		m.specialize()
	}
	m.start(true)
	m.awaitServices()
	return m
}

// Close switches the machine off and waits until all its goroutines have ended.
func (m *Machine) Close() {
	m.mu.Lock()
	m.closed = true
	m.powerOff()
	m.mu.Unlock()
	m.running.Wait()
}

// Process returns the machine as seen by a new process of that name. The process ends with Kill,
// Exit, a reboot or Close.
func (m *Machine) Process(name string) *platform.Platform { return m.Spawn(name).Platform }

// Register adds a program. If several programs match an executable, the program that was added last
// runs.
func (m *Machine) Register(p Program) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.programs = append(m.programs, p)
	m.disk.forgetPrograms()
}

// Up returns a context that ends when the machine goes down; it returns false while the machine is
// down. With the context, a server in front of the machine detects that its connections are cut.
func (m *Machine) Up() (context.Context, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boot == nil {
		return nil, false
	}
	return m.boot.ctx, true
}

// AwaitUp waits until the machine is up and each automatic service has started or has failed to
// start.
func (m *Machine) AwaitUp(ctx context.Context) error {
	return m.await(ctx, func() bool { return m.boot != nil && m.settled() })
}

// await waits until the function `condition` returns true. It calls the function with the lock
// held, whenever the machine's state may have changed.
func (m *Machine) await(ctx context.Context, condition func() bool) error {
	for {
		m.mu.Lock()
		done, changed := condition(), m.changed
		m.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// notify wakes all waiters for the machine's state. The caller holds the lock.
func (m *Machine) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// spawn runs a goroutine that Close waits for.
func (m *Machine) spawn(f func()) { m.running.Go(f) }

// HandleHTTP serves the requests of HTTPGet at an address such as 127.0.0.1:10248 until the process
// ends.
func (p *Process) HandleHTTP(address string, handler http.Handler) error {
	return p.p.listen(address, handler)
}
