package simulated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// ErrKilled is returned by every call of a killed process: the code of the process may still run,
// but its calls have no effect any more.
var ErrKilled = errors.New("the process was killed")

// Exit codes that Windows gives to processes that did not exit on their own.
const (
	exitKilled = 1          // the exit code that taskkill and package windows pass to TerminateProcess
	exitCrash  = 0xC0000005 // STATUS_ACCESS_VIOLATION ([MS-ERREF] 2.3.1)
)

// Process is one process of the machine, as seen by its own program.
type Process struct {
	Platform    *platform.Platform
	Executable  string // full path
	Args        []string
	Folder      string
	Environment []string // variables added to the machine's environment, as NAME=value
	Stdin       io.Reader
	Stdout      io.Writer
	Stderr      io.Writer
	// Terminal is the process's terminal, which Stdin reads; nil: none.
	Terminal *Terminal
	// Service is the process's connection to the SCM; nil in a process that the SCM has not
	// started.
	Service *ServiceControl

	p     *process
	image *Image
}

// PID returns the ID of the process.
func (p *Process) PID() uint32 { return p.p.pid }

// Image returns the executable file that the process runs. It is nil for a process that Spawn
// added.
func (p *Process) Image() *Image { return p.image }

// Context ends with the process.
func (p *Process) Context() context.Context { return p.p.ctx }

// Kill ends the process at once, as kill -9 does: its files are closed, its
// locks released, its children end too, and its calls return ErrKilled.
func (p *Process) Kill() { p.p.kill(exitKilled) }

// Exit ends the process in an orderly way.
func (p *Process) Exit() { p.p.kill(0) }

// process is the machine's side of a process. m.mu guards its fields. The fields above `gone` do
// not change after the start of the process.
type process struct {
	m       *Machine
	pid     uint32
	parent  uint32
	name    string // kubelet.exe
	image   string // path of the executable when the process started
	file    *file  // the executable, locked until the process ends; nil: none
	started time.Time
	session uint32
	cores   float64 // number of cores that the process uses
	memory  uint64  // bytes
	// commandLine is the command line with which the process was started, and environment its variables.
	commandLine string
	environment []string
	ctx         context.Context
	cancel      context.CancelFunc

	account  *account
	gone     bool
	exitCode uint32
	service  *service              // the service of this process
	children map[*process]struct{} // those that end with this process
	handles  map[*handle]struct{}
	locks    map[*fileLock]struct{}
	holds    map[*Hold]struct{}
	closers  []func() // functions that are called when the process ends; they close listeners and pipes
}

// Spawn adds a process that runs no program: the caller is its code.
func (m *Machine) Spawn(name string) *Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.newProcess(name, nil)
	return &Process{Platform: p.platform(), Executable: name, p: p}
}

// newProcess adds a process; the caller holds the lock. IDs are multiples of 4, as those of handles are ("Why are process
// and thread IDs multiples of four?", Old New Thing, 2008-02-28). If the machine is down, the process has
// already ended.
func (m *Machine) newProcess(name string, parent *process) *process {
	m.lastPID += 4
	p := &process{
		m: m, pid: m.lastPID, name: name, started: now(), cores: idleCores, memory: usualMemory,
		children: map[*process]struct{}{},
		handles:  map[*handle]struct{}{},
		locks:    map[*fileLock]struct{}{},
		account:  system(),
	}
	p.environment = m.machineEnvironment()
	if parent != nil {
		p.account = parent.account
		p.environment = parent.environment
	}
	if m.boot == nil || (parent != nil && parent.gone) {
		p.ctx, p.cancel = context.WithCancel(context.Background())
		p.cancel()
		p.gone = true
		return p
	}
	p.ctx, p.cancel = context.WithCancel(m.boot.ctx)
	if parent != nil {
		p.parent = parent.pid
		parent.children[p] = struct{}{}
	}
	m.processes[p.pid] = p
	m.notify()
	return p
}

func (p *process) platform() *platform.Platform {
	return &platform.Platform{
		Machine:   machineView{p},
		Services:  servicesView{p},
		Registry:  registryView{p},
		Roots:     rootsView{p},
		Files:     filesView{p},
		Processes: processesView{p},
		Features:  featuresView{p},
		Firewall:  firewallView{p},
		Network:   networkView{p},
		Compute:   computeView{p},
	}
}

// check returns ErrKilled after the process has ended.
func (p *process) check() error {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.gone {
		return ErrKilled
	}
	return nil
}

// checkContext is like check, for calls that have a context.
func (p *process) checkContext(ctx context.Context) error {
	if err := p.check(); err != nil {
		return err
	}
	return ctx.Err()
}

func (p *process) serviceName() string {
	if p.service == nil {
		return ""
	}
	return p.service.config.Name
}

func (p *process) kill(code uint32) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.end(code)
}

// end ends the process and those of its children that are in its job, as all commands of the agent are: "kill on job
// close" ends them. Without a job, processes outlive their parent ("Destroying all child processes (and grandchildren)
// when the parent exits", Old New Thing, 2013-12-09). The caller holds the lock.
func (p *process) end(code uint32) {
	if p.gone {
		return
	}
	p.gone, p.exitCode = true, code
	p.cancel()
	delete(p.m.processes, p.pid)
	if parent := p.m.processes[p.parent]; parent != nil {
		delete(parent.children, p)
	}
	for child := range p.children {
		child.end(code)
	}
	for h := range p.handles {
		h.release()
	}
	for l := range p.locks {
		l.release()
	}
	for h := range p.holds {
		h.release()
	}
	for _, closer := range p.closers {
		closer()
	}
	if p.file != nil {
		p.file.running--
	}
	p.m.processEnded(p)
	p.m.notify()
}

// Kill ends every process of that name (kubelet.exe, ignoring case) and the
// process of the service of that name, and returns their number.
func (m *Machine) Kill(name string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, p := range m.processes {
		if strings.EqualFold(p.name, name) || strings.EqualFold(p.serviceName(), name) {
			p.end(exitKilled)
			n++
		}
	}
	return n
}

// Default properties of a process.
const (
	idleCores    = 0.01
	usualMemory  = 32 << 20
	usualHandles = 180
	usualThreads = 9
)

// ProcessSpec describes a process without a running program. It is for tests and for the processes
// of containers.
type ProcessSpec struct {
	Image       string // full path
	CommandLine string
	ParentPID   uint32 // the parent may have ended
	Session     uint32
	Started     time.Time // zero: now
	Cores       float64   // number of cores that the process uses; 0: nearly none
	Memory      uint64    // 0: 32 MiB
}

// AddProcess adds a process; Kill and a reboot end it.
func (m *Machine) AddProcess(spec ProcessSpec) (pid uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.addProcess(spec).pid
}

// addProcess is like AddProcess; the caller holds the lock.
func (m *Machine) addProcess(spec ProcessSpec) *process {
	p := m.newProcess(baseName(spec.Image), nil)
	p.image, p.parent, p.session = spec.Image, spec.ParentPID, spec.Session
	p.commandLine = cmp.Or(spec.CommandLine, commandline.Quote(spec.Image))
	if !spec.Started.IsZero() {
		p.started = spec.Started
	}
	p.cores, p.memory = cmp.Or(spec.Cores, p.cores), cmp.Or(spec.Memory, p.memory)
	return p
}

// processesView implements platform.Processes for one process.
type processesView struct{ p *process }

func (v processesView) List(ctx context.Context) ([]platform.Process, error) {
	if err := v.p.checkContext(ctx); err != nil {
		return nil, err
	}
	m := v.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []platform.Process
	for _, pid := range sortedKeys(m.processes) {
		p := m.processes[pid]
		list = append(list, platform.Process{
			PID: p.pid, ParentPID: p.parent, Name: p.name, Image: p.imagePath(),
			Started: p.started, CPU: time.Duration(p.cores * float64(time.Since(p.started))), Memory: p.memory,
			Handles: usualHandles + p.pid%32, Threads: usualThreads, Session: p.session, CommandLine: p.commandLine,
		})
	}
	return list, nil
}

// imagePath returns the present path of the executable: like Windows, it follows renames, since QueryFullProcessImageName
// asks for the name of the file object; the claim `running` of swdt selftest tries it.
func (p *process) imagePath() string {
	if p.file == nil || p.file.removed {
		return p.image
	}
	return p.file.path()
}

func (v processesView) Open(pid uint32) (platform.ProcessHandle, error) {
	if err := v.p.check(); err != nil {
		return nil, err
	}
	m := v.p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.processes[pid]
	if p == nil {
		return nil, fmt.Errorf("open process %d: %w", pid, fault.ErrNotExist)
	}
	return &processHandle{by: v.p, of: p}, nil
}

type processHandle struct{ by, of *process }

func (h *processHandle) Wait(ctx context.Context) error {
	select {
	case <-h.of.ctx.Done():
	case <-h.by.ctx.Done():
		return ErrKilled
	case <-ctx.Done():
		return ctx.Err()
	}
	return h.by.check()
}

func (h *processHandle) Kill() error {
	return h.by.do(OpProcessKill, h.of.name, func() error {
		h.of.end(exitKilled)
		return nil
	})
}

func (h *processHandle) Close() error { return nil }

// baseName returns the last part of a Windows path.
func baseName(p string) string {
	return path.Base(strings.ReplaceAll(p, `\`, `/`))
}
