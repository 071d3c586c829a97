package windows

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// service is an open handle to a service, with methods for the calls that need the handle.
type service struct {
	name   string
	handle windows.Handle
}

func openManager(access uint32) (windows.Handle, error) {
	manager, err := windows.OpenSCManager(nil, nil, access)
	return manager, failed(err, "open the Service Control Manager")
}

func openService(name string, access uint32) (service, error) {
	name16, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return service{}, fmt.Errorf("open service %q: %w", name, err)
	}
	manager, err := openManager(windows.SC_MANAGER_CONNECT)
	if err != nil {
		return service{}, err
	}
	defer windows.CloseServiceHandle(manager)
	handle, err := windows.OpenService(manager, name16, access)
	if errors.Is(err, windows.ERROR_INVALID_NAME) {
		err = windows.ERROR_SERVICE_DOES_NOT_EXIST // no service can have this name
	}
	return service{name: name, handle: handle}, failed(err, "open service %s", name)
}

func (s service) close() { windows.CloseServiceHandle(s.handle) }

func (s service) state() (windows.SERVICE_STATUS_PROCESS, error) {
	var status windows.SERVICE_STATUS_PROCESS
	var needed uint32
	err := windows.QueryServiceStatusEx(s.handle, windows.SC_STATUS_PROCESS_INFO,
		(*byte)(unsafe.Pointer(&status)), uint32(unsafe.Sizeof(status)), &needed)
	return status, failed(err, "query service %s", s.name)
}

func (s service) status() (platform.ServiceStatus, error) {
	raw, err := s.state()
	if err != nil {
		return platform.ServiceStatus{}, err
	}
	config, err := s.config()
	if err != nil {
		return platform.ServiceStatus{}, err
	}
	return statusOf(s.name, config.DisplayName, raw), nil
}

func statusOf(name, displayName string, raw windows.SERVICE_STATUS_PROCESS) platform.ServiceStatus {
	return platform.ServiceStatus{
		Name:             name,
		DisplayName:      displayName,
		State:            stateOf(raw.CurrentState),
		PID:              raw.ProcessId,
		ExitCode:         raw.Win32ExitCode,
		SpecificExitCode: raw.ServiceSpecificExitCode,
		SharedProcess:    raw.ServiceType&windows.SERVICE_WIN32_SHARE_PROCESS != 0,
	}
}

// enumerate returns the status of every Win32 service. It repeats the call until the buffer is
// large enough, since the list may grow between calls.
func enumerate(ctx context.Context, manager windows.Handle) ([]platform.ServiceStatus, error) {
	buffer := make([]byte, 64<<10)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var needed, count uint32
		err := windows.EnumServicesStatusEx(manager, windows.SC_ENUM_PROCESS_INFO, windows.SERVICE_WIN32,
			windows.SERVICE_STATE_ALL, &buffer[0], uint32(len(buffer)), &needed, &count, nil, nil)
		if errors.Is(err, windows.ERROR_MORE_DATA) {
			buffer = make([]byte, len(buffer)+int(needed))
			continue
		}
		if err != nil {
			return nil, err
		}
		raw := unsafe.Slice((*windows.ENUM_SERVICE_STATUS_PROCESS)(unsafe.Pointer(&buffer[0])), count)
		entries := make([]platform.ServiceStatus, 0, count)
		for _, e := range raw {
			entries = append(entries, statusOf(windows.UTF16PtrToString(e.ServiceName),
				windows.UTF16PtrToString(e.DisplayName), e.ServiceStatusProcess))
		}
		return entries, nil
	}
}

// dependents returns the services that depend on this one, directly or through others, in the
// order in which they would have to be stopped. Windows lists them in this order.
func (s service) dependents(state uint32) ([]string, error) {
	buffer := make([]byte, 4<<10)
	for {
		var needed, count uint32
		err := windows.EnumDependentServices(s.handle, state,
			(*windows.ENUM_SERVICE_STATUS)(unsafe.Pointer(&buffer[0])), uint32(len(buffer)), &needed, &count)
		if errors.Is(err, windows.ERROR_MORE_DATA) {
			buffer = make([]byte, len(buffer)+int(needed))
			continue
		}
		if err != nil {
			return nil, failed(err, "list the dependents of service %s", s.name)
		}
		raw := unsafe.Slice((*windows.ENUM_SERVICE_STATUS)(unsafe.Pointer(&buffer[0])), count)
		names := make([]string, 0, count)
		for _, e := range raw {
			names = append(names, windows.UTF16PtrToString(e.ServiceName))
		}
		return names, nil
	}
}

// directDependents returns those of the services in `all` whose own configuration names this
// service as a dependency.
func directDependents(name string, all []string) ([]string, error) {
	var direct []string
	for _, dependent := range all {
		s, err := openService(dependent, windows.SERVICE_QUERY_CONFIG)
		if errors.Is(err, fault.ErrNoService) {
			continue // the service was deleted after it was listed
		}
		if err != nil {
			return nil, err
		}
		config, err := s.config()
		s.close()
		if err != nil {
			return nil, err
		}
		for _, needed := range config.Dependencies {
			if strings.EqualFold(needed, name) {
				direct = append(direct, dependent)
				break
			}
		}
	}
	return direct, nil
}

func (s service) config() (platform.ServiceConfig, error) {
	buffer := make([]byte, 8<<10) // the maximum that the SCM returns
	var needed uint32
	raw := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0]))
	err := windows.QueryServiceConfig(s.handle, raw, uint32(len(buffer)), &needed)
	if err != nil {
		return platform.ServiceConfig{}, failed(err, "read the configuration of service %s", s.name)
	}
	account := windows.UTF16PtrToString(raw.ServiceStartName)
	if strings.EqualFold(account, "LocalSystem") {
		account = ""
	}
	return platform.ServiceConfig{
		Name:         s.name,
		DisplayName:  windows.UTF16PtrToString(raw.DisplayName),
		CommandLine:  windows.UTF16PtrToString(raw.BinaryPathName),
		StartType:    startOf(raw.StartType),
		Account:      account,
		Dependencies: readMultiString(raw.Dependencies),
	}, nil
}

func (s service) query2(level uint32) ([]byte, error) {
	buffer := make([]byte, 8<<10)
	var needed uint32
	err := windows.QueryServiceConfig2(s.handle, level, &buffer[0], uint32(len(buffer)), &needed)
	return buffer, err
}

func (s service) description() (string, error) {
	buffer, err := s.query2(windows.SERVICE_CONFIG_DESCRIPTION)
	if err != nil {
		return "", err
	}
	return windows.UTF16PtrToString((*windows.SERVICE_DESCRIPTION)(unsafe.Pointer(&buffer[0])).Description), nil
}

// configure changes those settings of a service that have a value in config.
func (s service) configure(config platform.ServiceConfig) error {
	texts, err := config16(config)
	if err != nil {
		return err
	}
	start := uint32(windows.SERVICE_NO_CHANGE)
	if config.StartType != "" {
		start = startCode(config.StartType)
	}
	err = windows.ChangeServiceConfig(s.handle, windows.SERVICE_NO_CHANGE, start, windows.SERVICE_NO_CHANGE,
		texts.commandLine, nil, nil, texts.dependencies, texts.account, nil, texts.displayName)
	if err != nil {
		return failed(err, "configure service %s", config.Name)
	}
	return s.configureExtras(config)
}

// configureExtras sets the description and the recovery actions, which are not part of the main
// configuration.
func (s service) configureExtras(config platform.ServiceConfig) error {
	if config.Description != "" {
		text, err := windows.UTF16PtrFromString(config.Description)
		if err != nil {
			return fmt.Errorf("describe service %s: %w", s.name, err)
		}
		info := windows.SERVICE_DESCRIPTION{Description: text}
		err = windows.ChangeServiceConfig2(s.handle, windows.SERVICE_CONFIG_DESCRIPTION, (*byte)(unsafe.Pointer(&info)))
		if err != nil && !unknownLevel(err) {
			return failed(err, "describe service %s", s.name)
		}
	}
	if config.Recovery == nil {
		return nil
	}
	return s.setRecovery(*config.Recovery)
}

// unknownLevel reports whether err means that this machine does not support a
// part of the configuration. Wine does not support most parts.
func unknownLevel(err error) bool {
	return errors.Is(err, windows.ERROR_INVALID_LEVEL) || errors.Is(err, windows.ERROR_CALL_NOT_IMPLEMENTED)
}

// texts16 holds a configuration's texts as the SCM expects them. A nil text means "unchanged",
// and for CreateService "the default".
type texts16 struct {
	name, displayName, commandLine, account, dependencies *uint16
}

func config16(config platform.ServiceConfig) (texts16, error) {
	var texts texts16
	for _, text := range []struct {
		to   **uint16
		from string
	}{
		{&texts.name, config.Name},
		{&texts.displayName, config.DisplayName},
		{&texts.commandLine, config.CommandLine},
		{&texts.account, config.Account},
	} {
		if text.from == "" {
			continue
		}
		pointer, err := windows.UTF16PtrFromString(text.from)
		if err != nil {
			return texts, fmt.Errorf("service %q: %q: %w", config.Name, text.from, err)
		}
		*text.to = pointer
	}
	if config.Dependencies == nil {
		return texts, nil
	}
	list, err := multiString(config.Dependencies)
	if err != nil {
		return texts, fmt.Errorf("service %q: dependencies: %w", config.Name, err)
	}
	texts.dependencies = &list[0]
	return texts, nil
}

// multiString joins names. It adds a zero after each name, and one more at the end.
func multiString(names []string) ([]uint16, error) {
	var list []uint16
	for _, name := range names {
		text, err := windows.UTF16FromString(name)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		list = append(list, text...)
	}
	if len(list) == 0 {
		list = append(list, 0)
	}
	return append(list, 0), nil
}

func readMultiString(list *uint16) []string {
	var names []string
	for list != nil && *list != 0 {
		name := windows.UTF16PtrToString(list)
		names = append(names, name)
		text, err := windows.UTF16FromString(name)
		if err != nil {
			break
		}
		list = (*uint16)(unsafe.Add(unsafe.Pointer(list), len(text)*2))
	}
	return names
}
