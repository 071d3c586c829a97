package windows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/windows"

	"github.com/swdt-dev/swdt/internal/host"
)

// Wine's Service Control Manager (8.0) leaves some of its work undone. It does
// not notice that a service's process has ended, keeps dependencies in the
// registry and acts on none of them. What callers of package host may rely on
// is done here instead; Windows never comes this way.

const servicesKey = `HKLM\SYSTEM\CurrentControlSet\Services\`

// wineHoldManager opens the Service Control Manager once and for ever. When one
// thread of a process closes the last handle to it while another opens one,
// Wine's RPC runs the new handle down with the old: invalid handle.
func wineHoldManager() {
	_, _ = windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT) // the next call will say it
}

// bury gives a service whose process has gone the status that Windows would
// have given it.
func bury(status host.ServiceStatus) host.ServiceStatus {
	if status.State == host.Stopped || status.PID == 0 || runs(status.PID) {
		return status
	}
	status.State, status.PID = host.Stopped, 0
	status.ExitCode, status.SpecificExitCode = uint32(windows.ERROR_PROCESS_ABORTED), 0
	return status
}

func runs(pid uint32) bool {
	handle, err := processes{}.Open(pid)
	if err != nil {
		return !errors.Is(err, host.ErrNotExist)
	}
	return handle.Close() == nil
}

func wineDependencies(name string) ([]string, error) {
	value, err := registryKeys{}.Get(servicesKey+name, "DependOnService")
	if errors.Is(err, host.ErrNotExist) {
		return nil, nil
	}
	return value.Strings, err
}

// wineKeepingDependencies makes a change, which costs a service its dependencies
// under Wine, and puts those that it had, or is to have, back.
func wineKeepingDependencies(config host.ServiceConfig, change func(host.ServiceConfig) error) error {
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
	return registryKeys{}.Set(servicesKey+config.Name, host.RegistryValue{
		Name: "DependOnService", Type: host.RegistryMultiString, Strings: needed,
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

// wineStoppable refuses what Windows refuses.
func (s services) wineStoppable(ctx context.Context, name string) error {
	status, err := s.Status(ctx, name)
	if err != nil {
		return err
	}
	if status.State == host.Stopped {
		return translate(windows.ERROR_SERVICE_NOT_ACTIVE)
	}
	// The direct ones will do: where none of those runs, none of theirs does.
	dependents, err := wineDependents(name)
	if err != nil {
		return err
	}
	for _, dependent := range dependents {
		status, err := s.Status(ctx, dependent)
		if err != nil && !errors.Is(err, host.ErrNoService) {
			return err
		}
		if err == nil && status.State != host.Stopped {
			return fmt.Errorf("%s: %w", dependent, translate(windows.ERROR_DEPENDENT_SERVICES_RUNNING))
		}
	}
	return nil
}

// wineStartNeeded starts what a service depends on and waits until it runs, as
// Windows does before it starts the service itself.
func (s services) wineStartNeeded(ctx context.Context, name string) error {
	needed, err := wineDependencies(name)
	if err != nil {
		return err
	}
	for _, dependency := range needed {
		if strings.HasPrefix(dependency, "+") {
			continue // a load order group
		}
		status, err := s.Status(ctx, dependency)
		switch {
		case errors.Is(err, host.ErrNoService):
			return fmt.Errorf("%s: %w", dependency, translate(windows.ERROR_SERVICE_DEPENDENCY_DELETED))
		case err != nil:
			return err
		case status.State == host.Running:
			continue
		}
		err = s.Start(ctx, dependency)
		if err != nil && !errors.Is(err, host.ErrServiceRunning) {
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
		case host.Running:
			return nil
		case host.Stopped:
			return fmt.Errorf("%s: %w", name, translate(windows.ERROR_SERVICE_DEPENDENCY_FAIL))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s is %s: %w", name, status.State, ctx.Err())
		}
	}
}
