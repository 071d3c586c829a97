package host

import (
	"context"
	"time"
)

// ServiceState is where a service is in its life.
type ServiceState string

const (
	Stopped         ServiceState = "stopped"
	StartPending    ServiceState = "startPending"
	Running         ServiceState = "running"
	StopPending     ServiceState = "stopPending"
	ContinuePending ServiceState = "continuePending"
	PausePending    ServiceState = "pausePending"
	Paused          ServiceState = "paused"
)

// StartType is when the Service Control Manager starts a service.
type StartType string

const (
	StartAuto     StartType = "auto"
	StartManual   StartType = "manual"
	StartDisabled StartType = "disabled"
)

// ServiceStatus is what the SCM knows about a service at this moment.
type ServiceStatus struct {
	Name        string
	DisplayName string
	State       ServiceState
	PID         uint32 // 0 when no process runs
	// ExitCode is the Win32 error of the last stop or failed start; when it is
	// 1066 (ERROR_SERVICE_SPECIFIC_ERROR), SpecificExitCode is the service's own.
	ExitCode         uint32
	SpecificExitCode uint32
	// SharedProcess is set for services that live in a process with others
	// (svchost), whose process does not end with the service.
	SharedProcess bool
}

// ServiceConfig is how a service is registered. A zero field in Configure
// leaves that setting as it is.
type ServiceConfig struct {
	Name        string
	DisplayName string
	Description string
	// CommandLine is the executable and its arguments, quoted as Windows wants.
	CommandLine  string
	StartType    StartType
	Account      string // empty: LocalSystem
	Dependencies []string
	Recovery     *Recovery
}

// Recovery is what the SCM does when the service's process dies.
type Recovery struct {
	// Restarts are the delays before the first, second, … restart; after the
	// last one nothing more is done.
	Restarts []time.Duration
	// Reset is the time without a failure after which counting starts anew.
	Reset time.Duration
}

// Services is the Service Control Manager. Start and Stop only ask: package scm
// waits. Names compare without case.
type Services interface {
	// List returns every Win32 service, sorted by name.
	List(ctx context.Context) ([]ServiceStatus, error)
	Status(ctx context.Context, name string) (ServiceStatus, error)
	// Config returns what can be read of the configuration; a part that this
	// machine cannot report (Wine: recovery) is left zero.
	Config(ctx context.Context, name string) (ServiceConfig, error)
	// Dependents names the services that need this one directly, in any state.
	Dependents(ctx context.Context, name string) ([]string, error)
	Create(ctx context.Context, config ServiceConfig) error
	Configure(ctx context.Context, config ServiceConfig) error
	// Delete marks the service for deletion; it is gone once it has stopped and
	// nobody holds a handle to it.
	Delete(ctx context.Context, name string) error
	// Start asks the SCM to start the service with extra arguments. Depending
	// services stay as they are; services it depends on are started by the SCM.
	Start(ctx context.Context, name string, args ...string) error
	// Stop sends the stop control and returns at once.
	Stop(ctx context.Context, name string) error
}
