package simulated

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// errNoControl is ERROR_SERVICE_CANNOT_ACCEPT_CTRL (1061).
var errNoControl = errors.New("the service cannot accept control messages at this time")

// ServiceControl is a service program's side of the SCM.
type ServiceControl struct {
	Name string
	Args []string // the arguments of Start, without the service's name

	s         *service
	p         *process
	connected chan struct{}
	connect   sync.Once
	stop      chan struct{} // closed by the first stop control
	stopOnce  sync.Once
	// preshutdown is set if the service accepts PRESHUTDOWN instead of SHUTDOWN.
	preshutdown bool
	hangs       bool // its handler does not return
	exit        uint32
	specific    uint32
}

// Connect reports to the SCM that the process is a service program; a start of the service waits
// for this report. Running and Stopped connect too.
func (c *ServiceControl) Connect() { c.connect.Do(func() { close(c.connected) }) }

// Running reports that the service has started.
func (c *ServiceControl) Running() {
	c.Connect()
	c.report(platform.Running, platform.StartPending)
}

// StartPending reports that the service starts, or starts its program again.
func (c *ServiceControl) StartPending() {
	c.Connect()
	c.report(platform.StartPending, "")
}

// Paused reports that the service waits.
func (c *ServiceControl) Paused() { c.report(platform.Paused, "") }

// StopRequested returns a channel that is closed when the SCM asks the service to stop. The
// service's state is then stop pending.
func (c *ServiceControl) StopRequested() <-chan struct{} { return c.stop }

// Stopped reports the end of the service; its process may still run for a while. A program that
// returns without calling Stopped counts as crashed.
func (c *ServiceControl) Stopped(exit, specific uint32) {
	c.Connect()
	c.exit, c.specific = exit, specific
	c.report(platform.Stopped, "")
}

// report is SetServiceStatus: it sets the service's state if the present state is `from`, or if `from` is empty.
func (c *ServiceControl) report(state, from platform.ServiceState) {
	m := c.s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.p.gone || c.s.run != c || (from != "" && c.s.state != from) {
		return
	}
	if c.s.state == platform.StopPending && state != platform.Stopped {
		return
	}
	if state == platform.Stopped {
		c.s.stopped(c.exit, c.specific)
		c.s.exitedWith(c.exit)
		return
	}
	c.s.state = state
	m.notify()
}

// stopped ends a service in an orderly way; the caller holds the lock.
func (s *service) stopped(exit, specific uint32) {
	s.state, s.exit, s.specific = platform.Stopped, exit, specific
	s.process, s.run = nil, nil
	s.m.options.Log.Info("service stopped", "service", s.config.Name, "exit", exit)
	s.forgetIfDeleted()
	s.m.notify()
}

// startService starts a service and the services that it depends on. ctx is the context of the
// current boot. The parameter `chain` has the services whose dependencies are being started, to
// detect cycles. A dependency that is missing, or is marked for deletion, is ERROR_SERVICE_DEPENDENCY_DELETED; one that
// does not start is ERROR_SERVICE_DEPENDENCY_FAIL (StartService).
func (m *Machine) startService(ctx context.Context, name string, args, chain []string) error {
	s, err := m.beginStart(ctx, name, args, chain)
	if err != nil {
		return err
	}
	if err := m.startDependencies(ctx, s, append(chain, fold(name))); err != nil {
		code := uint32(errorServiceDependencyFail)
		if errors.Is(err, fault.ErrNoService) || errors.Is(err, fault.ErrServiceDeleting) {
			code = errorServiceDependencyDeleted
		}
		return m.startFailed(ctx, s, code, err)
	}
	if s.shared {
		m.startShared(ctx, s)
		return nil
	}
	return m.startProcess(ctx, s)
}

// beginStart sets the state of a service to start pending, or returns the reason why it cannot start: the codes of
// StartService and of RStartServiceW ([MS-SCMR]), which names 1056 for each state but "stopped", and 1115.
func (m *Machine) beginStart(ctx context.Context, name string, args, chain []string) (*service, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.service(name)
	switch {
	case err != nil:
		return nil, err
	case s.deleting:
		return nil, fault.ErrServiceDeleting
	case s.config.StartType == platform.StartDisabled:
		return nil, fault.ErrServiceDisabled
	case slices.Contains(chain, fold(name)):
		return nil, fmt.Errorf("service %s depends on itself: %w", name, fault.ErrStartFailed)
	case s.state != platform.Stopped:
		return nil, fault.ErrServiceRunning
	case ctx.Err() != nil:
		return nil, ErrKilled // the machine went down
	case m.boot != nil && m.boot.shuttingDown:
		return nil, fault.ErrShuttingDown
	}
	s.cancelRestart()
	s.state, s.exit, s.specific, s.args, s.autoPending = platform.StartPending, 0, 0, args, false
	m.notify()
	return s, nil
}

func (m *Machine) startDependencies(ctx context.Context, s *service, chain []string) error {
	m.mu.Lock()
	names := slices.Clone(s.config.Dependencies)
	m.mu.Unlock()
	for _, name := range names {
		if strings.HasPrefix(name, "+") {
			continue // SC_GROUP_IDENTIFIER: the name of a group, here without members
		}
		err := m.startService(ctx, name, nil, chain)
		if err != nil && !errors.Is(err, fault.ErrServiceRunning) {
			return fmt.Errorf("service %s, which it depends on: %w", name, err)
		}
		if err := m.awaitRunning(ctx, name); err != nil {
			return fmt.Errorf("service %s, which it depends on: %w", name, err)
		}
	}
	return nil
}

// awaitRunning waits for a dependency: "this service can only run if the service it depends on is running"
// (CreateService, lpDependencies).
func (m *Machine) awaitRunning(ctx context.Context, name string) error {
	var state platform.ServiceState
	err := m.await(ctx, func() bool {
		s := m.services[fold(name)]
		if state = platform.Stopped; s != nil {
			state = s.state
		}
		return state != platform.StartPending
	})
	if err == nil && state != platform.Running {
		err = fmt.Errorf("is %s: %w", state, fault.ErrStartFailed)
	}
	return err
}

// startFailed sets the state of a service back to stopped, after beginStart has set it to start
// pending. It returns the error of the start.
func (m *Machine) startFailed(ctx context.Context, s *service, code uint32, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return ErrKilled // the machine went down
	}
	if s.state == platform.StartPending {
		s.stopped(code, 0)
	}
	if errors.Is(err, fault.ErrStartFailed) || errors.Is(err, fault.ErrBlocked) {
		return err
	}
	return fmt.Errorf("%w: %v", fault.ErrStartFailed, err) //nolint:errorlint // one failure, one meaning
}

// startProcess runs the service's executable and waits until its process has connected to the SCM.
func (m *Machine) startProcess(ctx context.Context, s *service) error {
	m.mu.Lock()
	argv, args := commandline.Split(m.expand(s.config.CommandLine)), slices.Clone(s.args)
	m.mu.Unlock()
	if len(argv) == 0 {
		return m.startFailed(ctx, s, errorFileNotFound, fault.ErrNotExist)
	}
	control := &ServiceControl{
		Name: s.config.Name, Args: args, s: s, connected: make(chan struct{}), stop: make(chan struct{}),
	}
	proc, err := m.execute(ctx, execution{path: argv[0], args: argv[1:], folder: systemFolder, control: control})
	if err != nil {
		return m.startFailed(ctx, s, startCode(err), fmt.Errorf("%s: %w", argv[0], err))
	}
	return m.awaitConnected(ctx, s, proc, control)
}

func startCode(err error) uint32 {
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return uint32(refused.refusal)
	case errors.Is(err, fault.ErrNotExist):
		return errorFileNotFound
	case errors.Is(err, errBadFormat):
		return errorBadExeFormat
	}
	return errorAccessDenied
}

func (m *Machine) awaitConnected(ctx context.Context, s *service, proc *process, control *ServiceControl) error {
	timeout := time.NewTimer(serviceConnectTimeout)
	defer timeout.Stop()
	select {
	case <-control.connected:
		return nil
	case <-proc.ctx.Done():
		select {
		case <-control.connected:
			return nil // the process ended just after connecting
		default:
		}
		return m.startFailed(ctx, s, errorServiceRequestTimeout,
			errors.New("its process ended before it answered the service control manager (1053)"))
	case <-timeout.C:
		err := m.startFailed(ctx, s, errorServiceRequestTimeout,
			errors.New("its process did not answer the service control manager in 30s (1053)"))
		proc.kill(exitKilled)
		return err
	}
}

// startShared starts a service that is a DLL in svchost.
func (m *Machine) startShared(ctx context.Context, s *service) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	s.process = m.boot.svchost
	m.transition(s, m.startDelay(), platform.StartPending, platform.Running)
}

// transition changes a service's state from `from` to `to` after a delay, unless the state has
// changed meanwhile.
func (m *Machine) transition(s *service, delay time.Duration, from, to platform.ServiceState) {
	change := func() {
		if s.state != from {
			return
		}
		if to == platform.Stopped {
			s.stopped(0, 0)
			return
		}
		s.state = to
		m.notify()
	}
	if delay <= 0 {
		change()
		return
	}
	m.later(delay, m.boot.ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		change()
	})
}

// startDelay returns how long a service is start pending; the caller holds the
// lock.
func (m *Machine) startDelay() time.Duration {
	if m.boot == nil || m.boot.first {
		return 0
	}
	return m.options.StartDelay
}

// stop lets the SCM send the stop control to the service, with the codes of ControlService: 1062 if it is stopped, 1061
// if it starts or stops, 1051 if a dependent is not stopped. As platform.Services asks, a service that stops already is
// no error. The caller holds the lock.
func (s *service) stop() error {
	switch s.state {
	case platform.Stopped:
		return fault.ErrServiceStopped
	case platform.StopPending:
		return nil
	case platform.Running, platform.Paused:
	default:
		return fmt.Errorf("it is %s: %w", s.state, errNoControl)
	}
	for _, d := range s.dependents() {
		if d.state != platform.Stopped {
			return fmt.Errorf("%s: %w", d.config.Name, fault.ErrDependents)
		}
	}
	s.state = platform.StopPending
	s.m.notify()
	if s.shared {
		s.m.transition(s, s.m.options.StopDelay, platform.StopPending, platform.Stopped)
		return nil
	}
	s.run.stopOnce.Do(func() { close(s.run.stop) })
	return nil
}

// processEnded carries out the SCM's reaction to the end of a process; the caller
// holds the lock. "A service is considered failed when it terminates without reporting a status of SERVICE_STOPPED"
// (SERVICE_FAILURE_ACTIONS); its exit code is ERROR_PROCESS_ABORTED. That a start that fails is no such
// failure is a guess: docs/guesses.md.
func (m *Machine) processEnded(p *process) {
	if m.boot != nil && m.boot.svchost == p {
		m.sharedEnded(p)
	}
	s := p.service
	if s == nil || s.process != p || s.state == platform.Stopped {
		return
	}
	if s.run != nil && !isClosed(s.run.connected) {
		return // startProcess is still waiting, and reports the end
	}
	// This applies also while the service is stop pending: a process that ended without reporting
	// "stopped" has failed.
	s.stopped(errorProcessAborted, 0)
	if m.boot != nil {
		s.recover()
	}
}

func (m *Machine) sharedEnded(p *process) {
	m.boot.svchost = m.newProcess(p.name, nil)
	m.boot.svchost.image = p.image
	for _, s := range m.services {
		if s.process == p && s.state != platform.Stopped {
			s.stopped(errorProcessAborted, 0)
			s.recover()
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// bootContext returns a context that ends when the machine goes down.
func (m *Machine) bootContext() context.Context {
	if ctx, up := m.Up(); up {
		return ctx
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// startAutomatic starts every automatic service, dependencies first; the caller
// holds the lock. Windows starts groups in their order, and does not promise an order of the services in no group
// ("Automatically Starting Services"): all begin at once here.
func (m *Machine) startAutomatic() {
	var names []string
	for _, name := range sortedKeys(m.services) {
		if s := m.services[name]; s.config.StartType == platform.StartAuto && !s.deleting {
			s.autoPending = true
			names = append(names, name)
		}
	}
	ctx := m.boot.ctx
	for _, name := range names {
		m.spawn(func() { m.startAtBoot(ctx, name) })
	}
}

func (m *Machine) startAtBoot(ctx context.Context, name string) {
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if s := m.services[name]; s != nil && ctx.Err() == nil {
			s.autoPending = false
			m.notify()
		}
	}()
	if err := m.startService(ctx, name, nil, nil); err != nil && !errors.Is(err, fault.ErrServiceRunning) {
		m.options.Log.Warn("automatic service", "service", name, "error", err)
	}
}

// expand expands %NAME% in a text as Windows does for a value of the type REG_EXPAND_SZ.
func (m *Machine) expand(text string) string {
	for name, value := range map[string]string{
		"%SystemRoot%": `C:\Windows`, "%SystemDrive%": systemDrive, "%windir%": `C:\Windows`,
		"%ProgramData%": `C:\ProgramData`, "%ProgramFiles%": `C:\Program Files`,
	} {
		for i := strings.Index(fold(text), fold(name)); i >= 0; i = strings.Index(fold(text), fold(name)) {
			text = text[:i] + value + text[i+len(name):]
		}
	}
	return text
}
