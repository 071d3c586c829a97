package simulated

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Win32 error codes of ended services: winerror.h, "System Error Codes" on learn.microsoft.com. 1077 is the code of a
// service that was not started since the boot.
const (
	errorAccessDenied          = 5
	errorBadExeFormat          = 193
	errorFileNotFound          = 2
	errorServiceRequestTimeout = 1053
	errorServiceSpecific       = 1066
	errorProcessAborted        = 1067
	errorServiceDependencyFail = 1068
	// errorServiceDependencyDeleted is of a dependency that does not exist.
	errorServiceDependencyDeleted = 1075
	errorServiceNeverStarted      = 1077
)

// serviceConnectTimeout is how long the SCM waits until a process that it started connects to it: the default of the
// registry value ServicesPipeTimeout; golang/go#23479 has Go services that meet it at boot.
const serviceConnectTimeout = 30 * time.Second

// service is one registered service. The lifecycle is in lifecycle.go.
type service struct {
	m        *Machine
	created  int // the place in the SCM's database
	config   platform.ServiceConfig
	state    platform.ServiceState
	exit     uint32
	specific uint32
	shared   bool // runs in svchost
	deleting bool
	opened   int // handles of other programs; see HoldService

	process     *process // nil while the state is Stopped
	run         *ServiceControl
	args        []string // the arguments of Start
	autoPending bool     // since the boot, the SCM has not begun to start this automatic service
	failures    platform.Failures
	crashes     int                // unexpected ends of its process since the boot
	restart     context.CancelFunc // cancels the pending restart of the recovery; nil: none is pending
}

// reset sets the state of a service after a restart of the machine.
func (s *service) reset() {
	s.state, s.exit, s.specific = platform.Stopped, errorServiceNeverStarted, 0
	s.process, s.run, s.args = nil, nil, nil
	s.failures, s.crashes, s.autoPending = platform.Failures{}, 0, false
	s.cancelRestart()
}

func (s *service) status() platform.ServiceStatus {
	st := platform.ServiceStatus{
		Name: s.config.Name, DisplayName: s.config.DisplayName, State: s.state,
		ExitCode: s.exit, SpecificExitCode: s.specific, SharedProcess: s.shared,
	}
	if s.process != nil && s.state != platform.Stopped {
		st.PID = s.process.pid
	}
	return st
}

func cloneConfig(c platform.ServiceConfig) platform.ServiceConfig {
	c.Dependencies = slices.Clone(c.Dependencies)
	if c.Recovery != nil {
		r := *c.Recovery
		r.Restarts, r.Actions = slices.Clone(r.Restarts), slices.Clone(r.Actions)
		c.Recovery = &r
	}
	return c
}

// servicesView implements platform.Services for one process.
type servicesView struct{ p *process }

// openManager returns 1115 while Windows shuts down: so do OpenSCManager and OpenService ([MS-SCMR] 3.1.4.15 and
// 3.1.4.16), with which each call of platform.Services begins. The caller holds the lock.
func (m *Machine) openManager() error {
	if m.boot != nil && m.boot.shuttingDown {
		return fmt.Errorf("open the Service Control Manager: %w", fault.ErrShuttingDown)
	}
	return nil
}

// change performs an operation that changes the SCM's database.
func (v servicesView) change(ctx context.Context, kind Kind, name string, effect func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.p.do(kind, name, func() error {
		if err := v.p.m.openManager(); err != nil {
			return err
		}
		return effect()
	})
}

func (m *Machine) service(name string) (*service, error) {
	s := m.services[fold(name)]
	if s == nil {
		return nil, fmt.Errorf("service %s: %w", name, fault.ErrNoService)
	}
	return s, nil
}

// look runs a read-only function for one service under the lock.
func (v servicesView) look(ctx context.Context, name string, f func(s *service)) error {
	if err := v.p.checkContext(ctx); err != nil {
		return err
	}
	v.p.m.mu.Lock()
	defer v.p.m.mu.Unlock()
	if err := v.p.m.openManager(); err != nil {
		return err
	}
	s, err := v.p.m.service(name)
	if err == nil {
		f(s)
	}
	return err
}

func (v servicesView) List(ctx context.Context) ([]platform.ServiceStatus, error) {
	if err := v.p.checkContext(ctx); err != nil {
		return nil, err
	}
	v.p.m.mu.Lock()
	defer v.p.m.mu.Unlock()
	if err := v.p.m.openManager(); err != nil {
		return nil, err
	}
	var list []platform.ServiceStatus
	for _, name := range sortedKeys(v.p.m.services) {
		list = append(list, v.p.m.services[name].status())
	}
	return list, nil
}

func (v servicesView) Status(ctx context.Context, name string) (status platform.ServiceStatus, err error) {
	err = v.look(ctx, name, func(s *service) { status = s.status() })
	return status, err
}

func (v servicesView) Config(ctx context.Context, name string) (config platform.ServiceConfig, err error) {
	err = v.look(ctx, name, func(s *service) { config = cloneConfig(s.config) })
	if config.Recovery == nil {
		config.Recovery = &platform.Recovery{} // a service without actions: SERVICE_FAILURE_ACTIONS with cActions 0
	}
	return config, err
}

func (v servicesView) Dependents(ctx context.Context, name string) (names []string, err error) {
	err = v.look(ctx, name, func(s *service) {
		for _, d := range s.dependents() {
			names = append(names, d.config.Name)
		}
	})
	return names, err
}

// dependents returns the services that need s directly, sorted by name. EnumDependentServices lists those that need it
// through others too, in the order in which they can be stopped; package windows picks the direct ones.
func (s *service) dependents() []*service {
	var list []*service
	for _, name := range sortedKeys(s.m.services) {
		other := s.m.services[name]
		if slices.ContainsFunc(other.config.Dependencies, func(d string) bool {
			return strings.EqualFold(d, s.config.Name)
		}) {
			list = append(list, other)
		}
	}
	return list
}

func (v servicesView) Create(ctx context.Context, config platform.ServiceConfig) error {
	// The codes are those of CreateService: 1072, 1073, 1078, and 123 for a name with a slash.
	return v.change(ctx, OpServiceCreate, config.Name, func() error {
		if s := v.p.m.services[fold(config.Name)]; s != nil {
			if s.deleting {
				return fmt.Errorf("create service %s: %w", config.Name, fault.ErrServiceDeleting)
			}
			return fmt.Errorf("create service %s: %w", config.Name, fault.ErrServiceExists)
		}
		if config.Name == "" || strings.ContainsAny(config.Name, `/\`) || config.CommandLine == "" {
			return fmt.Errorf("create service %q: a name without slashes and a command line are needed: %w",
				config.Name, fault.ErrNotSupported)
		}
		if err := v.p.m.displayNameIsFree(config); err != nil {
			return fmt.Errorf("create service %s: %w", config.Name, err)
		}
		v.p.m.beforeChange()
		v.p.m.logServiceInstalled(v.p.m.addService(config).config)
		return nil
	})
}

// displayNameIsFree returns ERROR_DUPLICATE_SERVICE_NAME (1078) if the display name is the name or the display name of
// another service ("CreateService function" and "ChangeServiceConfig function" on learn.microsoft.com). A service that
// is marked for deletion still counts: its record stays until the last handle closes ([MS-SCMR] 3.1.4.3), and
// ReactOS's base/system/services/rpcserver.c looks through all records too.
func (m *Machine) displayNameIsFree(config platform.ServiceConfig) error {
	shown := fold(cmp.Or(config.DisplayName, config.Name))
	for name, other := range m.services {
		if name != fold(config.Name) && (shown == name || shown == fold(other.config.DisplayName)) {
			return fmt.Errorf("service %s has this display name: %w", other.config.Name, fault.ErrServiceExists)
		}
	}
	return nil
}

func (m *Machine) addService(config platform.ServiceConfig) *service {
	config = cloneConfig(config)
	if config.DisplayName == "" {
		config.DisplayName = config.Name
	}
	if config.StartType == "" {
		config.StartType = platform.StartManual
	}
	if config.Account == "" {
		config.Account = "LocalSystem"
	}
	if config.Recovery != nil && len(config.Recovery.Actions) > 0 {
		config.Recovery.SayActions(config.Recovery.Actions)
	}
	m.created++
	s := &service{m: m, created: m.created, config: config, state: platform.Stopped, exit: errorServiceNeverStarted}
	m.services[fold(config.Name)] = s
	m.notify()
	return s
}

func (v servicesView) Configure(ctx context.Context, config platform.ServiceConfig) error {
	return v.change(ctx, OpServiceConfigure, config.Name, func() error {
		s, err := v.p.m.service(config.Name)
		if err != nil {
			return err
		}
		if s.deleting { // ChangeServiceConfig: ERROR_SERVICE_MARKED_FOR_DELETE
			return fmt.Errorf("configure service %s: %w", config.Name, fault.ErrServiceDeleting)
		}
		if config.DisplayName != "" {
			if err := v.p.m.displayNameIsFree(config); err != nil {
				return fmt.Errorf("configure service %s: %w", config.Name, err)
			}
		}
		v.p.m.beforeChange()
		s.configure(cloneConfig(config))
		return nil
	})
}

// configure changes the settings that c has, as ChangeServiceConfig does: a nil text leaves a setting as it is.
func (s *service) configure(c platform.ServiceConfig) {
	set := func(to *string, value string) {
		if value != "" {
			*to = value
		}
	}
	set(&s.config.DisplayName, c.DisplayName)
	set(&s.config.Description, c.Description)
	set(&s.config.CommandLine, c.CommandLine)
	set((*string)(&s.config.StartType), string(c.StartType))
	set(&s.config.Account, c.Account)
	if c.Dependencies != nil {
		s.config.Dependencies = c.Dependencies
	}
	if c.Recovery != nil {
		s.config.Recovery = c.Recovery
		s.config.Recovery.SayActions(c.Recovery.List())
	}
}

func (v servicesView) Delete(ctx context.Context, name string) error {
	return v.change(ctx, OpServiceDelete, name, func() error {
		s, err := v.p.m.service(name)
		if err != nil {
			return err
		}
		if s.deleting { // DeleteService: ERROR_SERVICE_MARKED_FOR_DELETE
			return fmt.Errorf("delete service %s: %w", name, fault.ErrServiceDeleting)
		}
		v.p.m.beforeChange()
		s.deleting = true
		s.cancelRestart()
		s.forgetIfDeleted()
		return nil
	})
}

// HoldService opens a handle to a service, as services.msc and inventory agents do, and returns a function that closes
// it. (DeleteService: "The database entry is not removed until all open handles to the service have been closed […],
// and the service is not running.")
func (m *Machine) HoldService(name string) (release func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.service(name)
	if err != nil {
		return nil, err
	}
	s.opened++
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		s.opened--
		s.forgetIfDeleted()
	}), nil
}

func (s *service) forgetIfDeleted() {
	if s.deleting && s.opened == 0 && s.state == platform.Stopped && s.m.services[fold(s.config.Name)] == s {
		delete(s.m.services, fold(s.config.Name))
		s.m.forgetKey(s.config.Name)
		s.m.notify()
	}
}

// forgetKey removes a deleted service's key with all values, as the SCM does when the last handle closes (ReactOS,
// base/system/services/rpcserver.c, RCloseServiceHandle).
func (m *Machine) forgetKey(name string) {
	if services, err := m.registry.find(strings.TrimSuffix(servicesKey, `\`)); err == nil {
		delete(services.keys, fold(name))
	}
}

// Start asks the SCM to start the service. The SCM replies after the service's process has
// connected to the SCM: the service is start pending at that time, or runs already (StartService: "returns when the
// Service Control Manager receives notification […] that the ServiceMain thread for this service was created"). The SCM
// continues the start even if the caller ends.
func (v servicesView) Start(ctx context.Context, name string, args ...string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.p.operate(Operation{Kind: OpServiceStart, Target: name}, func(Verdict) error {
		m, answer := v.p.m, make(chan error, 1)
		if err := m.awaitTurn(ctx, v.p); err != nil {
			return fmt.Errorf("start service %s: %w", name, err)
		}
		m.spawn(func() { answer <- m.startService(m.bootContext(), name, args, nil) })
		var err error
		select {
		case err = <-answer:
		case <-ctx.Done():
			err = ctx.Err()
		case <-v.p.ctx.Done():
			return ErrKilled
		}
		if err != nil {
			return fmt.Errorf("start service %s: %w", name, err)
		}
		return nil
	})
}

func (v servicesView) Stop(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return v.p.operate(Operation{Kind: OpServiceStop, Target: name}, func(Verdict) error {
		if err := v.p.m.deliverStop(ctx, v.p, name); err != nil {
			return fmt.Errorf("stop service %s: %w", name, err)
		}
		return nil
	})
}
