package windows

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wait"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// services is the Service Control Manager. It calls advapi32 itself: if one part of a
// configuration cannot be read, as under Wine, package mgr returns an error for the whole
// configuration. No handle outlives a call, since Windows keeps a deleted service as long as a
// handle to it is open.
type services struct {
	wine bool // see scm_wine_windows.go
}

func (s services) List(ctx context.Context) ([]platform.ServiceStatus, error) {
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
			entries[i] = withEndedProcess(entries[i])
		}
	}
	sort.Slice(entries, func(i, j int) bool { // slices.SortFunc would add 12 KB to the agent for each type
		return strings.ToLower(entries[i].Name) < strings.ToLower(entries[j].Name)
	})
	return entries, nil
}

func (s services) Status(_ context.Context, name string) (platform.ServiceStatus, error) {
	open, err := openService(name, windows.SERVICE_QUERY_STATUS|windows.SERVICE_QUERY_CONFIG)
	if err != nil {
		return platform.ServiceStatus{}, err
	}
	defer open.close()
	status, err := open.status()
	if s.wine && err == nil {
		status = withEndedProcess(status)
	}
	return status, err
}

func (s services) Config(_ context.Context, name string) (platform.ServiceConfig, error) {
	open, err := openService(name, windows.SERVICE_QUERY_CONFIG)
	if err != nil {
		return platform.ServiceConfig{}, err
	}
	defer open.close()
	config, err := open.config()
	if err != nil {
		return platform.ServiceConfig{}, err
	}
	// Wine does not support all levels of information; parts that cannot be read are left out.
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

func (services) Create(_ context.Context, config platform.ServiceConfig) error {
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
		start = platform.StartManual
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
		// Delete the partly configured service, so that the next attempt to create it can succeed.
		return errors.Join(err, failed(windows.DeleteService(handle), "remove service %s again", config.Name))
	}
	return nil
}

func (s services) Configure(_ context.Context, config platform.ServiceConfig) error {
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
	open, err := openService(name, windows.SERVICE_START|windows.SERVICE_QUERY_STATUS)
	if err != nil {
		return err
	}
	if s.wine {
		if err := s.wineStartNeeded(ctx, name); err != nil {
			open.close()
			return fmt.Errorf("start service %s: %w", name, err)
		}
	}
	// The call returns when the process has reported to the SCM, which may take up to 30 s.
	return untilDone(ctx, "start service "+name, func() error {
		defer open.close()
		begun := time.Time{}
		err := startUnlocked(ctx, func() error {
			begun = time.Now()
			return windows.StartService(open.handle, uint32(len(args)), unsafe.SliceData(vectors))
		})
		if errors.Is(err, windows.ERROR_SERVICE_REQUEST_TIMEOUT) && time.Since(begun) > busySCM && open.notStarted() {
			return &Error{Code: windows.ERROR_SERVICE_REQUEST_TIMEOUT, kind: fault.ErrNotDelivered}
		}
		return startFailure(err)
	})
}

// busySCM is less than the 30 s that the SCM waits for the handler of another service.
const busySCM = 25 * time.Second

// notStarted reports whether StartService failed because the SCM waited for the handler of another service: "As with
// ControlService, StartService will block for 30 seconds if any service is busy handling a control code" (StartService,
// remarks). Both causes have the code ERROR_SERVICE_REQUEST_TIMEOUT. That a service whose process did not connect in time
// has this code as its exit code, and one that the SCM did not start keeps its own, is a guess: docs/guesses.md.
func (s service) notStarted() bool {
	now, err := s.state()
	return err == nil && now.CurrentState == windows.SERVICE_STOPPED &&
		now.Win32ExitCode != uint32(windows.ERROR_SERVICE_REQUEST_TIMEOUT)
}

// startUnlocked calls the function `start`, and repeats the call for up to 30 s while the SCM's
// database is locked. The SCM locks the database while it starts another service, above all at
// boot.
func startUnlocked(ctx context.Context, start func() error) error {
	return wait.Condition{
		Name:     "the SCM to unlock its database",
		Interval: 50 * time.Millisecond,
		Limit:    30 * time.Second,
		Look: func(context.Context) error {
			err := start()
			if err == nil {
				return nil
			}
			return wait.StopIf(!errors.Is(err, windows.ERROR_SERVICE_DATABASE_LOCKED), err)
		},
	}.Wait(ctx)
}

// startFailure translates the error of a failed StartService.
func startFailure(err error) error {
	if isAboutExecutable(uint32(code(err))) {
		return &Error{Code: code(err), kind: fault.ErrStartFailed}
	}
	return err
}

// Flush flushes the key of the services. The SCM's own documents do not say when it flushes the changes that it makes.
func (services) Flush(context.Context) error {
	path, err := windows.UTF16PtrFromString(`SYSTEM\CurrentControlSet\Services`)
	if err != nil {
		return err
	}
	var key windows.Handle
	if err := windows.RegOpenKeyEx(windows.HKEY_LOCAL_MACHINE, path, 0, windows.KEY_QUERY_VALUE, &key); err != nil {
		return failed(err, "open the key of the services")
	}
	defer windows.RegCloseKey(key)
	code, _, _ := windows.NewLazySystemDLL("advapi32.dll").NewProc("RegFlushKey").Call(uintptr(key))
	if code != 0 {
		return failed(syscall.Errno(code), "write the services' registrations to the disk")
	}
	return nil
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
	return untilDone(ctx, "stop service "+name, func() error {
		defer open.close()
		return open.stop()
	})
}

func (s service) stop() error {
	var ignored windows.SERVICE_STATUS
	err := windows.ControlService(s.handle, windows.SERVICE_CONTROL_STOP, &ignored)
	if errors.Is(err, windows.ERROR_SERVICE_REQUEST_TIMEOUT) { // for a start, this code has another meaning
		return &Error{Code: windows.ERROR_SERVICE_REQUEST_TIMEOUT, kind: fault.ErrNotDelivered}
	}
	if !errors.Is(err, windows.ERROR_SERVICE_CANNOT_ACCEPT_CTRL) {
		return err
	}
	// The service may be stopping already. Or it is starting, and cannot be stopped now.
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

// untilDone waits for a call that takes no context. If ctx ends first, the call
// continues on its own and its result is dropped.
func untilDone(ctx context.Context, what string, call func() error) error {
	outcome := make(chan error, 1)
	go func() { outcome <- call() }()
	select {
	case err := <-outcome:
		return failed(err, "%s", what)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
}

func stateOf(state uint32) platform.ServiceState {
	switch state {
	case windows.SERVICE_STOPPED:
		return platform.Stopped
	case windows.SERVICE_START_PENDING:
		return platform.StartPending
	case windows.SERVICE_STOP_PENDING:
		return platform.StopPending
	case windows.SERVICE_RUNNING:
		return platform.Running
	case windows.SERVICE_CONTINUE_PENDING:
		return platform.ContinuePending
	case windows.SERVICE_PAUSE_PENDING:
		return platform.PausePending
	case windows.SERVICE_PAUSED:
		return platform.Paused
	}
	return platform.ServiceState(fmt.Sprintf("state %d", state))
}

func startCode(start platform.StartType) uint32 {
	switch start {
	case platform.StartAuto:
		return windows.SERVICE_AUTO_START
	case platform.StartDisabled:
		return windows.SERVICE_DISABLED
	}
	return windows.SERVICE_DEMAND_START
}

func startOf(code uint32) platform.StartType {
	switch code {
	case windows.SERVICE_AUTO_START, windows.SERVICE_BOOT_START, windows.SERVICE_SYSTEM_START:
		return platform.StartAuto
	case windows.SERVICE_DISABLED:
		return platform.StartDisabled
	}
	return platform.StartManual
}

func milliseconds(d time.Duration) uint32 { return uint32(min(d.Milliseconds(), 1<<32-2)) }
