package platform

import "context"

// ServiceState is the state of a service.
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

// StartType determines when the Service Control Manager starts a service.
type StartType string

const (
	StartAuto     StartType = "auto"
	StartManual   StartType = "manual"
	StartDisabled StartType = "disabled"
)

// ServiceStatus is the SCM's present status of a service.
type ServiceStatus struct {
	Name        string
	DisplayName string
	State       ServiceState
	PID         uint32 // 0 when no process runs
	// ExitCode is the Win32 error of the last stop or failed start. If it is 1066
	// (ERROR_SERVICE_SPECIFIC_ERROR), SpecificExitCode is the service's own code.
	ExitCode         uint32
	SpecificExitCode uint32
	// SharedProcess is set if the service shares its process with other
	// services (svchost). Such a process does not end with the service.
	SharedProcess bool
}

// ServiceConfig is the configuration of a service. If a field is zero,
// Configure leaves that setting unchanged.
type ServiceConfig struct {
	Name        string
	DisplayName string
	Description string
	// CommandLine is the executable and its arguments, quoted for Windows.
	CommandLine  string
	StartType    StartType
	Account      string // empty: LocalSystem
	Dependencies []string
	// Recovery is nil only if this machine cannot report it. A service without recovery actions has no Restarts.
	Recovery *Recovery
}

// Services is the Service Control Manager. Start and Stop only send the request; package scm waits
// until the service runs or has stopped. Names compare without case.
type Services interface {
	// List returns every Win32 service, sorted by name.
	List(ctx context.Context) ([]ServiceStatus, error)
	Status(ctx context.Context, name string) (ServiceStatus, error)
	// Config returns the configuration. A part that this machine cannot report
	// is zero (under Wine: recovery).
	Config(ctx context.Context, name string) (ServiceConfig, error)
	// Dependents returns the services that depend on this one directly, in any
	// state.
	Dependents(ctx context.Context, name string) ([]string, error)
	Create(ctx context.Context, config ServiceConfig) error
	Configure(ctx context.Context, config ServiceConfig) error
	// Delete marks the service for deletion. The service disappears once it has stopped and all
	// handles to it are closed.
	Delete(ctx context.Context, name string) error
	// Flush returns when the registrations of all services are on the disk. Without it, a power cut can lose changes
	// that are some time old, while a renamed file keeps its new name.
	Flush(ctx context.Context) error
	// Start requests the SCM to start the service with extra arguments. The SCM also starts the
	// services on which this service depends, but not the services that depend on this one. If the SCM waits for the
	// handler of another service, the error is fault.ErrNotDelivered after 30 s, and the service was not started.
	Start(ctx context.Context, name string, args ...string) error
	// Stop sends the stop control and returns at once.
	Stop(ctx context.Context, name string) error
}
