package windows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Wine's Service Control Manager (8.0) is incomplete. It does not notice that a service's process has ended,
// and it stores dependencies in the registry without acting on them. This file adds the behaviour on which
// callers of package platform may rely; Windows never runs this code.

const servicesKey = `HKLM\SYSTEM\CurrentControlSet\Services\`

// wineHoldManager opens the Service Control Manager once and never closes that handle. Without this
// handle, one thread of a process may close the last handle while another thread opens a new one.
// Wine's RPC then invalidates the new handle together with the old one, and reports "invalid
// handle".
func wineHoldManager() {
	_, _ = windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT) // the next call reports the error
}

// withEndedProcess returns the status that it receives. If the service's process has ended, it
// returns the status that Windows would report instead.
func withEndedProcess(status platform.ServiceStatus) platform.ServiceStatus {
	if status.State == platform.Stopped || status.PID == 0 || runs(status.PID) {
		return status
	}
	status.State, status.PID = platform.Stopped, 0
	status.ExitCode, status.SpecificExitCode = uint32(windows.ERROR_PROCESS_ABORTED), 0
	return status
}

func runs(pid uint32) bool {
	handle, err := processes{}.Open(pid)
	if err != nil {
		return !errors.Is(err, fault.ErrNotExist)
	}
	return handle.Close() == nil
}

func wineDependencies(name string) ([]string, error) {
	value, err := registryKeys{}.Get(servicesKey+name, "DependOnService")
	if errors.Is(err, fault.ErrNotExist) {
		return nil, nil
	}
	return value.Strings, err
}

// wineKeepingDependencies calls the function `change`, which changes the service's configuration.
// Under Wine, this call removes the service's dependencies. So wineKeepingDependencies sets them
// again afterwards: those in config or, if config has none, the old ones.
func wineKeepingDependencies(config platform.ServiceConfig, change func(platform.ServiceConfig) error) error {
	needed, err := wineDependencies(config.Name)
	if err != nil {
		return err
	}
	if config.Dependencies != nil {
		needed = config.Dependencies
	}
	if err := change(config); err != nil {
		return err
	}
	return registryKeys{}.Set(servicesKey+config.Name, platform.RegistryValue{
		Name: "DependOnService", Type: platform.RegistryMultiString, Strings: needed,
	})
}

func wineDependents(name string) ([]string, error) {
	_, names, err := registryKeys{}.List(strings.TrimSuffix(servicesKey, `\`))
	if err != nil {
		return nil, err
	}
	var dependents []string
	for _, candidate := range names {
		needed, err := wineDependencies(candidate)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(needed, func(n string) bool { return strings.EqualFold(n, name) }) {
			dependents = append(dependents, candidate)
		}
	}
	return dependents, nil
}

// wineStoppable returns an error if Windows would refuse to stop the service.
func (s services) wineStoppable(ctx context.Context, name string) error {
	status, err := s.Status(ctx, name)
	if err != nil {
		return err
	}
	if status.State == platform.Stopped {
		return translate(windows.ERROR_SERVICE_NOT_ACTIVE)
	}
	// The direct dependents suffice: if none of them runs, none of their own dependents runs.
	dependents, err := wineDependents(name)
	if err != nil {
		return err
	}
	for _, dependent := range dependents {
		status, err := s.Status(ctx, dependent)
		if err != nil && !errors.Is(err, fault.ErrNoService) {
			return err
		}
		if err == nil && status.State != platform.Stopped {
			return fmt.Errorf("%s: %w", dependent, translate(windows.ERROR_DEPENDENT_SERVICES_RUNNING))
		}
	}
	return nil
}

// wineStartNeeded starts the services that a service depends on and waits until
// they run, as Windows does before it starts the service itself.
func (s services) wineStartNeeded(ctx context.Context, name string) error {
	needed, err := wineDependencies(name)
	if err != nil {
		return err
	}
	for _, dependency := range needed {
		if strings.HasPrefix(dependency, "+") {
			continue // the name of a load order group, not of a service
		}
		status, err := s.Status(ctx, dependency)
		switch {
		case errors.Is(err, fault.ErrNoService):
			return fmt.Errorf("%s: %w", dependency, translate(windows.ERROR_SERVICE_DEPENDENCY_DELETED))
		case err != nil:
			return err
		case status.State == platform.Running:
			continue
		}
		err = s.Start(ctx, dependency)
		if err != nil && !errors.Is(err, fault.ErrServiceRunning) {
			return fmt.Errorf("%w: %w", translate(windows.ERROR_SERVICE_DEPENDENCY_FAIL), err)
		}
		if err := s.wineAwaitRunning(ctx, dependency); err != nil {
			return err
		}
	}
	return nil
}

func (s services) wineAwaitRunning(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // the SCM's own limit
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		status, err := s.Status(ctx, name)
		if err != nil {
			return err
		}
		switch status.State {
		case platform.Running:
			return nil
		case platform.Stopped:
			return fmt.Errorf("%s: %w", name, translate(windows.ERROR_SERVICE_DEPENDENCY_FAIL))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s is %s: %w", name, status.State, ctx.Err())
		}
	}
}
