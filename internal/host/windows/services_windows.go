package windows

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/host"
)

// services is the Service Control Manager. It calls advapi32 itself: package
// mgr gives up on a whole configuration when one part of it cannot be read, as
// under Wine. No handle outlives a call, since an open handle keeps a deleted
// service alive.
type services struct {
	wine bool // see scm_wine_windows.go
}

func (s services) List(ctx context.Context) ([]host.ServiceStatus, error) {
	manager, err := openManager(windows.SC_MANAGER_CONNECT | windows.SC_MANAGER_ENUMERATE_SERVICE)
	if err != nil {
		return nil, err
	}
	defer windows.CloseServiceHandle(manager)
	entries, err := enumerate(ctx, manager)
	if err != nil {
		return nil, failed(err, "list services")
	}
	if s.wine {
		for i := range entries {
			entries[i] = bury(entries[i])
		}
	}
	sort.Slice(entries, func(i, j int) bool { // slices.SortFunc would add 12 KB to the agent for each type
		return strings.ToLower(entries[i].Name) < strings.ToLower(entries[j].Name)
	})
	return entries, nil
}

func (s services) Status(_ context.Context, name string) (host.ServiceStatus, error) {
	open, err := openService(name, windows.SERVICE_QUERY_STATUS|windows.SERVICE_QUERY_CONFIG)
	if err != nil {
		return host.ServiceStatus{}, err
	}
	defer open.close()
	status, err := open.status()
	if s.wine && err == nil {
		status = bury(status)
	}
	return status, err
}

func (s services) Config(_ context.Context, name string) (host.ServiceConfig, error) {
	open, err := openService(name, windows.SERVICE_QUERY_CONFIG)
	if err != nil {
		return host.ServiceConfig{}, err
	}
	defer open.close()
	config, err := open.config()
	if err != nil {
		return host.ServiceConfig{}, err
	}
	// Wine does not know all levels; what cannot be read is left out.
	if config.Description, err = open.description(); err != nil && !unknownLevel(err) {
		return config, failed(err, "read the description of service %s", name)
	}
	if config.Recovery, err = open.recovery(); err != nil && !unknownLevel(err) {
		return config, failed(err, "read the recovery actions of service %s", name)
	}
	if s.wine {
		config.Dependencies, err = wineDependencies(name)
	}
	return config, err
}

func (s services) Dependents(_ context.Context, name string) ([]string, error) {
	open, err := openService(name, windows.SERVICE_ENUMERATE_DEPENDENTS)
	if err != nil {
		return nil, err
	}
	defer open.close()
	if s.wine {
		return wineDependents(name)
	}
	all, err := open.dependents(windows.SERVICE_STATE_ALL)
	if err != nil {
		return nil, err
	}
	return directDependents(name, all)
}

func (services) Create(_ context.Context, config host.ServiceConfig) error {
	manager, err := openManager(windows.SC_MANAGER_CONNECT | windows.SC_MANAGER_CREATE_SERVICE)
	if err != nil {
		return err
	}
	defer windows.CloseServiceHandle(manager)
	texts, err := config16(config)
	if err != nil {
		return err
	}
	start := config.StartType
	if start == "" {
		start = host.StartManual
	}
	handle, err := windows.CreateService(manager, texts.name, texts.displayName, windows.SERVICE_ALL_ACCESS,
		windows.SERVICE_WIN32_OWN_PROCESS, startCode(start), windows.SERVICE_ERROR_NORMAL,
		texts.commandLine, nil, nil, texts.dependencies, texts.account, nil)
	if err != nil {
		return failed(err, "create service %s", config.Name)
	}
	s := service{name: config.Name, handle: handle}
	defer s.close()
	if err := s.configureExtras(config); err != nil {
		// Half a service is worse than none: creating again would fail.
		return errors.Join(err, failed(windows.DeleteService(handle), "take service %s back", config.Name))
	}
	return nil
}

func (s services) Configure(_ context.Context, config host.ServiceConfig) error {
	access := uint32(windows.SERVICE_CHANGE_CONFIG)
	if config.Recovery != nil {
		access |= windows.SERVICE_START // a restart action needs the right to start
	}
	open, err := openService(config.Name, access)
	if err != nil {
		return err
	}
	defer open.close()
	if s.wine {
		return wineKeepingDependencies(config, open.configure)
	}
	return open.configure(config)
}

func (services) Delete(_ context.Context, name string) error {
	s, err := openService(name, windows.DELETE)
	if err != nil {
		return err
	}
	defer s.close()
	return failed(windows.DeleteService(s.handle), "delete service %s", name)
}

func (s services) Start(ctx context.Context, name string, args ...string) error {
	vectors := make([]*uint16, 0, len(args)+1)
	for _, arg := range args {
		text, err := windows.UTF16PtrFromString(arg)
		if err != nil {
			return fmt.Errorf("start service %s: argument %q: %w", name, arg, err)
		}
		vectors = append(vectors, text)
	}
	open, err := openService(name, windows.SERVICE_START)
	if err != nil {
		return err
	}
	if s.wine {
		if err := s.wineStartNeeded(ctx, name); err != nil {
			open.close()
			return fmt.Errorf("start service %s: %w", name, err)
		}
	}
	// The call lasts until the process has answered the SCM, up to 30 s.
	return patiently(ctx, "start service "+name, func() error {
		defer open.close()
		return startFailure(startUnlocked(ctx, func() error {
			return windows.StartService(open.handle, uint32(len(args)), unsafe.SliceData(vectors))
		}))
	})
}

// startUnlocked starts a service when the SCM's database is not locked, as it is
// while the SCM starts another, at boot above all; 30 s is the most that takes.
func startUnlocked(ctx context.Context, start func() error) error {
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		err := start()
		if !errors.Is(err, windows.ERROR_SERVICE_DATABASE_LOCKED) {
			return err
		}
		select {
		case <-pause.C:
		case <-limit.C:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

// startFailure gives a failed StartService its meaning. The handle was opened
// with the right to start, so what cannot be found or accessed here is the
// service's executable.
func startFailure(err error) error {
	switch code(err) {
	case windows.ERROR_FILE_NOT_FOUND, windows.ERROR_PATH_NOT_FOUND, windows.ERROR_ACCESS_DENIED,
		windows.ERROR_BAD_EXE_FORMAT, windows.ERROR_EXE_MACHINE_TYPE_MISMATCH,
		windows.ERROR_SHARING_VIOLATION, windows.ERROR_INVALID_IMAGE_HASH:
		return &Error{Code: code(err), kind: host.ErrStartFailed}
	}
	return err
}

func (s services) Stop(ctx context.Context, name string) error {
	if s.wine {
		if err := s.wineStoppable(ctx, name); err != nil {
			return fmt.Errorf("stop service %s: %w", name, err)
		}
	}
	open, err := openService(name, windows.SERVICE_STOP|windows.SERVICE_QUERY_STATUS)
	if err != nil {
		return err
	}
	return patiently(ctx, "stop service "+name, func() error {
		defer open.close()
		return open.stop()
	})
}

func (s service) stop() error {
	var ignored windows.SERVICE_STATUS
	err := windows.ControlService(s.handle, windows.SERVICE_CONTROL_STOP, &ignored)
	if !errors.Is(err, windows.ERROR_SERVICE_CANNOT_ACCEPT_CTRL) {
		return err
	}
	// On its way already, or not able to stop just now (starting)?
	now, statusErr := s.state()
	switch {
	case statusErr != nil:
		return statusErr
	case now.CurrentState == windows.SERVICE_STOP_PENDING:
		return nil
	case now.CurrentState == windows.SERVICE_STOPPED:
		return windows.ERROR_SERVICE_NOT_ACTIVE
	}
	return fmt.Errorf("it is %s: %w", stateOf(now.CurrentState), err)
}

// patiently waits for a call that takes no context. When ctx ends first the
// call goes on by itself and its outcome is nobody's.
func patiently(ctx context.Context, what string, call func() error) error {
	outcome := make(chan error, 1)
	go func() { outcome <- call() }()
	select {
	case err := <-outcome:
		return failed(err, "%s", what)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
}

func stateOf(state uint32) host.ServiceState {
	switch state {
	case windows.SERVICE_STOPPED:
		return host.Stopped
	case windows.SERVICE_START_PENDING:
		return host.StartPending
	case windows.SERVICE_STOP_PENDING:
		return host.StopPending
	case windows.SERVICE_RUNNING:
		return host.Running
	case windows.SERVICE_CONTINUE_PENDING:
		return host.ContinuePending
	case windows.SERVICE_PAUSE_PENDING:
		return host.PausePending
	case windows.SERVICE_PAUSED:
		return host.Paused
	}
	return host.ServiceState(fmt.Sprintf("state %d", state))
}

func startCode(start host.StartType) uint32 {
	switch start {
	case host.StartAuto:
		return windows.SERVICE_AUTO_START
	case host.StartDisabled:
		return windows.SERVICE_DISABLED
	}
	return windows.SERVICE_DEMAND_START
}

func startOf(code uint32) host.StartType {
	switch code {
	case windows.SERVICE_AUTO_START, windows.SERVICE_BOOT_START, windows.SERVICE_SYSTEM_START:
		return host.StartAuto
	case windows.SERVICE_DISABLED:
		return host.StartDisabled
	}
	return host.StartManual
}

func milliseconds(d time.Duration) uint32 { return uint32(min(d.Milliseconds(), 1<<32-2)) }
