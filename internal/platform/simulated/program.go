package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// errBadFormat is ERROR_BAD_EXE_FORMAT (193).
var errBadFormat = errors.New("not a valid Win32 application for this machine")

// Program is the code that runs when an executable that matches it is started, as a service or by
// Processes.Run.
type Program struct {
	Name string
	// Match reports whether an executable is this program.
	Match func(*Image) bool
	// Main is the program's main function; it returns the exit code. ctx ends when the process is
	// killed or the machine goes down, and Main must return soon after that. In a service
	// (p.Service is set) Main reports the service's state; a return without Stopped is a crash.
	Main func(ctx context.Context, p *Process) int
}

// AgentProgram returns the agent as a program. As a service, the agent runs until it returns or the
// SCM asks it to stop or reports a shutdown, as cmd/swdt-agent does.
func AgentProgram(a Agent) Program {
	return Program{
		Name: "swdt-agent",
		Match: func(image *Image) bool {
			return strings.EqualFold(image.SHA256(), a.Hash) ||
				image.Throwaway != nil && strings.EqualFold(image.Throwaway(), a.Hash)
		},
		Main: func(ctx context.Context, p *Process) int {
			code, started, _ := p.AsService(ctx, func(ctx context.Context) int {
				return a.Main(ctx, p.Platform, p.Executable, p.Args, p.Stdin, p.Stdout, p.Stderr)
			})
			if started {
				return code
			}
			return a.Main(ctx, p.Platform, p.Executable, p.Args, p.Stdin, p.Stdout, p.Stderr)
		},
	}
}

// AsService runs the function `work` as cmd/swdt-agent does on Windows: the service is running until `work` returns, or
// until the SCM asks it to stop or reports a shutdown. If the process is no service, AsService returns false without
// calling `work`.
func (p *Process) AsService(ctx context.Context, work func(context.Context) int) (code int, started bool, err error) {
	if p.Service == nil {
		return 0, false, nil
	}
	p.Service.AcceptPreshutdown()
	p.Service.Running()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.p.m.spawn(func() {
		select {
		case <-p.Service.StopRequested():
			cancel()
		case <-ctx.Done():
		}
	})
	if code = work(ctx); code != 0 && !isClosed(p.Service.StopRequested()) {
		p.Service.Stopped(errorServiceSpecific, uint32(code))
	} else {
		p.Service.Stopped(0, 0)
	}
	return code, true, nil
}

// RunService runs a service program. It reports "running" after the machine's start delay, and
// calls the function `work`. The ctx of that call ends when the service is asked to stop. If the
// function returns 0, RunService reports the end of the service after the stop delay. It returns
// the exit code of the function.
func (p *Process) RunService(ctx context.Context, work func(ctx context.Context) int) int {
	p.Service.Connect()
	m := p.p.m
	m.mu.Lock()
	delay := m.startDelay()
	m.mu.Unlock()
	if wait.For(ctx, delay) != nil {
		return exitKilled
	}
	p.Service.Running()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	m.spawn(func() {
		select {
		case <-p.Service.StopRequested():
			cancel()
		case <-inner.Done():
		}
	})
	if code := work(inner); code != 0 {
		return code
	}
	_ = wait.For(ctx, m.options.StopDelay)
	p.Service.Stopped(0, 0)
	return 0
}

// execution is a request to start an executable.
type execution struct {
	path        string
	args        []string
	folder      string
	environment []string
	parent      *process
	// outlives is set if the process is in no job of its parent.
	outlives  bool
	control   *ServiceControl // the service's side of the SCM; nil: the process is not a service
	inherited *ServiceControl // the parent service's side of the SCM; nil: the parent process is in no service
	stdin     io.Reader
	stdout    io.Writer
	stderr    io.Writer
	terminal  *Terminal // read instead of stdin; nil: none
}

// execute starts a process; ctx is the context of the current boot. The program runs in a goroutine
// of its own, and the process ends when the program returns.
func (m *Machine) execute(ctx context.Context, e execution) (*process, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil || (e.parent != nil && e.parent.gone) {
		return nil, ErrKilled
	}
	f, err := m.executable(e.path)
	if err != nil {
		return nil, err
	}
	if err := m.blockedFile(f, false); err != nil {
		return nil, err
	}
	image := f.inspect()
	program, err := m.program(image)
	if err != nil {
		return nil, err
	}
	p := m.newProcess(f.name, e.parent)
	if e.outlives {
		delete(e.parent.children, p)
	}
	p.image, p.file, p.commandLine = f.path(), f, commandline.Join(append([]string{f.path()}, e.args...)...)
	if e.control != nil {
		p.environment = m.serviceEnvironment(e.control.Name)
	}
	p.environment = merge(p.environment, e.environment)
	f.running++
	run := &Process{
		Platform: p.platform(), Executable: p.image, Args: slices.Clone(e.args), Folder: e.folder,
		Environment: slices.Clone(e.environment), Stdin: e.stdin, Stdout: e.stdout, Stderr: e.stderr,
		Service: e.control, p: p, image: image,
	}
	if e.terminal != nil {
		run.Terminal, run.Stdin = e.terminal, e.terminal.attach(p)
	}
	run.fillStreams()
	if c := e.inherited; c != nil {
		run.Service, p.service = c, c.s
	}
	if c := e.control; c != nil {
		c.p, p.service = p, c.s
		c.s.process, c.s.run = p, c
	}
	m.options.Log.Debug("process", "image", p.image, "args", e.args, "pid", p.pid)
	m.spawn(func() {
		code := program.Main(p.ctx, run)
		if e.control != nil {
			_ = wait.For(p.ctx, m.options.ExitDelay)
		}
		p.kill(uint32(code))
	})
	return p, nil
}

func (p *Process) fillStreams() {
	if p.Stdin == nil {
		p.Stdin = strings.NewReader("")
	}
	if p.Stdout == nil {
		p.Stdout = io.Discard
	}
	if p.Stderr == nil {
		p.Stderr = io.Discard
	}
	p.Stdout, p.Stderr = mortal{p.Stdout, p.p}, mortal{p.Stderr, p.p}
}

// mortal is a process's output stream. It accepts bytes only until the process ends: a killed
// process writes nothing more.
type mortal struct {
	io.Writer
	p *process
}

func (m mortal) Write(data []byte) (int, error) {
	if m.p.ctx.Err() != nil {
		return 0, ErrKilled
	}
	return m.Writer.Write(data)
}

// executable returns the file that Windows executes for a path; the path may lack .exe (CreateProcess appends it to a name
// without an extension). A file that is open for writing cannot be mapped as an image: ERROR_SHARING_VIOLATION.
func (m *Machine) executable(path string) (*file, error) {
	f, err := m.disk.find(path, true)
	if errors.Is(err, fault.ErrNotExist) && !strings.Contains(baseName(path), ".") {
		f, err = m.disk.find(path+".exe", true)
	}
	switch {
	case err != nil:
		return nil, err
	case f.folder:
		return nil, fmt.Errorf("%s is a folder: %w", path, fault.ErrPermission)
	case f.writers() > 0 || f.exclusive():
		return nil, fmt.Errorf("%s is open for writing: %w", path, fault.ErrInUse)
	}
	return f, nil
}

// program returns the program that runs for an image: the latest registered one that matches. Windows answers a file that
// is no executable of its processor with ERROR_BAD_EXE_FORMAT, or ERROR_EXE_MACHINE_TYPE_MISMATCH (216).
func (m *Machine) program(image *Image) (Program, error) {
	for _, p := range slices.Backward(m.programs) {
		if p.Match(image) {
			return p, nil
		}
	}
	if !image.PE {
		return Program{}, fmt.Errorf("%s: %w", image.Path, errBadFormat)
	}
	return Program{}, fmt.Errorf("%s is for %s: %w", image.Path, image.Architecture, errBadFormat)
}
