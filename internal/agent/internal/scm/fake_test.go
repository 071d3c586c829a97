package scm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// fakeSCM has only what package scm needs of Windows, with the difficult
// behaviour: pending states that refuse controls, processes that outlive their
// service, services that never stop.
type fakeSCM struct {
	platform.Services

	// busy is until when the SCM waits for the handler of a foreign service. Meanwhile it delivers no control.
	busy time.Time

	mu       sync.Mutex
	services map[string]*fakeService // by lower-case name
	pids     map[uint32]*fakeProcess
	nextPID  uint32
}

type fakeService struct {
	name      string
	needs     []string
	state     platform.ServiceState
	process   *fakeProcess
	shared    bool
	exitCode  uint32
	launching time.Duration // start pending without a process
	starting  time.Duration
	stopping  time.Duration
	exiting   time.Duration // how long the process outlives the service
	failing   bool          // ends instead of running
	stubborn  bool          // never stops
	hung      bool          // its handler never returns
	restarts  bool          // recovery: is started again when its process is killed
	protected bool          // its process cannot be opened
	reboots   bool          // recovery: restarts Windows when its process is killed
}

type fakeProcess struct {
	pid  uint32
	gone chan struct{}
	once sync.Once
	kill func()
}

func newSCM(services ...*fakeService) *fakeSCM {
	f := &fakeSCM{services: map[string]*fakeService{}, pids: map[uint32]*fakeProcess{}, nextPID: 100}
	for _, s := range services {
		f.services[strings.ToLower(s.name)] = s
		if s.state != platform.Stopped {
			f.launch(s)
		}
	}
	return f
}

func (f *fakeSCM) platform() *platform.Platform {
	return &platform.Platform{Services: f, Processes: fakeProcesses{scm: f}}
}

func (f *fakeSCM) launch(s *fakeService) {
	f.nextPID += 4
	p := &fakeProcess{pid: f.nextPID, gone: make(chan struct{})}
	p.kill = func() { f.killed(s, p) }
	s.process, f.pids[p.pid] = p, p
}

func (f *fakeSCM) ends(s *fakeService, p *fakeProcess) {
	delete(f.pids, p.pid)
	p.once.Do(func() { close(p.gone) })
	if s.process == p {
		s.process = nil
	}
}

func (f *fakeSCM) killed(s *fakeService, p *fakeProcess) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ends(s, p)
	s.state, s.exitCode = platform.Stopped, 1067
	if s.restarts {
		s.stubborn, s.state = false, platform.Running
		f.launch(s)
	}
}

func (f *fakeSCM) find(name string) (*fakeService, error) {
	s := f.services[strings.ToLower(name)]
	if s == nil {
		return nil, fmt.Errorf("service %s: %w", name, fault.ErrNoService)
	}
	return s, nil
}

func (f *fakeSCM) Status(ctx context.Context, name string) (platform.ServiceStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.find(name)
	if err != nil {
		return platform.ServiceStatus{}, err
	}
	status := platform.ServiceStatus{Name: s.name, State: s.state, ExitCode: s.exitCode, SharedProcess: s.shared}
	if s.process != nil && s.state != platform.Stopped {
		status.PID = s.process.pid
	}
	return status, ctx.Err()
}

func (f *fakeSCM) Config(ctx context.Context, name string) (platform.ServiceConfig, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.find(name)
	if err != nil {
		return platform.ServiceConfig{}, err
	}
	return platform.ServiceConfig{Name: s.name, Recovery: &platform.Recovery{Reboots: s.reboots}}, ctx.Err()
}

func (f *fakeSCM) Dependents(ctx context.Context, name string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, s := range f.services {
		if slices.ContainsFunc(s.needs, func(n string) bool { return strings.EqualFold(n, name) }) {
			names = append(names, s.name)
		}
	}
	slices.Sort(names)
	return names, ctx.Err()
}

func (f *fakeSCM) Start(ctx context.Context, name string, _ ...string) error {
	if err := f.deliver(ctx, ""); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.find(name)
	if err != nil {
		return err
	}
	if s.state != platform.Stopped {
		return fault.ErrServiceRunning
	}
	s.state = platform.StartPending
	if s.launching == 0 {
		f.launch(s)
	}
	time.AfterFunc(s.launching+s.starting, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if s.launching > 0 {
			f.launch(s)
		}
		s.state = platform.Running
		if s.failing {
			s.state, s.exitCode = platform.Stopped, 1066
			f.ends(s, s.process)
		}
	})
	return nil
}

// controlTimeout is how long ControlService and StartService block while a service is in its handler: "a call to ControlService will
// block for 30 seconds if any service is busy handling a control code. If the busy service still has not returned from
// its handler function when the timeout expires, ControlService fails with ERROR_SERVICE_REQUEST_TIMEOUT." The remarks of
// StartService say the same.
const controlTimeout = 30 * time.Second

// deliver waits until the SCM has delivered a control to a service.
func (f *fakeSCM) deliver(ctx context.Context, name string) error {
	f.mu.Lock()
	blocked := min(controlTimeout, time.Until(f.busy))
	if s, err := f.find(name); err == nil && s.hung && s.state == platform.Running {
		blocked = controlTimeout
	}
	f.mu.Unlock()
	if blocked > 0 {
		if err := wait.For(ctx, blocked); err != nil {
			return err
		}
	}
	if blocked == controlTimeout {
		return fault.ErrNotDelivered
	}
	return nil
}

func (f *fakeSCM) Stop(ctx context.Context, name string) error {
	if err := f.deliver(ctx, name); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, err := f.find(name)
	if err != nil {
		return err
	}
	switch {
	case s.state == platform.Stopped:
		return fault.ErrServiceStopped
	case s.state != platform.Running && s.state != platform.Paused:
		return errors.New("cannot accept control messages at this time")
	}
	for _, d := range f.services {
		if d.state != platform.Stopped && slices.ContainsFunc(d.needs, func(n string) bool {
			return strings.EqualFold(n, name)
		}) {
			return fault.ErrDependents
		}
	}
	s.state = platform.StopPending
	if s.stubborn {
		return nil
	}
	process := s.process
	time.AfterFunc(s.stopping, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		s.state = platform.Stopped
		time.AfterFunc(s.exiting, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.ends(s, process)
		})
	})
	return nil
}

// fakeProcesses is separate from fakeSCM because both interfaces have a List.
type fakeProcesses struct {
	platform.Processes
	scm *fakeSCM
}

func (f fakeProcesses) Open(pid uint32) (platform.ProcessHandle, error) {
	f.scm.mu.Lock()
	defer f.scm.mu.Unlock()
	for _, s := range f.scm.services {
		if s.protected && s.process != nil && s.process.pid == pid {
			return nil, fault.ErrPermission
		}
	}
	p := f.scm.pids[pid]
	if p == nil {
		return nil, fault.ErrNotExist
	}
	return p, nil
}

func (p *fakeProcess) Wait(ctx context.Context) error {
	select {
	case <-p.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *fakeProcess) Kill() error  { p.kill(); return nil }
func (p *fakeProcess) Close() error { return nil }
