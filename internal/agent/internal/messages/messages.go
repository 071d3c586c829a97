// Package messages translates between the platform's values and the messages of the RPCs.
package messages

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// ServiceStatus returns the message of a status. The parameter `started` is the time at which the
// service's process started; zero: unknown.
func ServiceStatus(status platform.ServiceStatus, started time.Time) *agentv1.ServiceStatus {
	return &agentv1.ServiceStatus{
		Name:             status.Name,
		DisplayName:      status.DisplayName,
		State:            word.Value[agentv1.ServiceState](string(status.State)),
		Pid:              status.PID,
		ExitCode:         status.ExitCode,
		SpecificExitCode: status.SpecificExitCode,
		Started:          Timestamp(started),
	}
}

// Timestamp returns the message of a time; nil for the zero time, which means "unknown".
func Timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// ServiceConfig returns the message of a registration.
func ServiceConfig(c platform.ServiceConfig) *agentv1.ServiceConfig {
	config := &agentv1.ServiceConfig{
		Name:         c.Name,
		DisplayName:  c.DisplayName,
		Description:  c.Description,
		CommandLine:  c.CommandLine,
		StartType:    word.Value[agentv1.StartType](string(c.StartType)),
		Account:      c.Account,
		Dependencies: c.Dependencies,
	}
	if c.Recovery != nil {
		config.Recovery = &agentv1.Recovery{
			Reset_: durationpb.New(c.Recovery.Reset), RepeatLast: c.Recovery.RepeatLast, OnErrorExit: c.Recovery.OnErrorExit,
			Reboots: c.Recovery.Reboots,
		}
		for _, action := range c.Recovery.Actions {
			config.Recovery.Actions = append(config.Recovery.Actions, &agentv1.RecoveryAction{
				Kind: agentv1.RecoveryKind(action.Kind), After: durationpb.New(action.After)})
		}
		for _, delay := range c.Recovery.Restarts {
			config.Recovery.Restarts = append(config.Recovery.Restarts, durationpb.New(delay))
		}
	}
	return config
}

// PlatformConfig returns the registration that a message describes.
func PlatformConfig(c *agentv1.ServiceConfig) platform.ServiceConfig {
	config := platform.ServiceConfig{
		Name:         c.GetName(),
		DisplayName:  c.GetDisplayName(),
		Description:  c.GetDescription(),
		CommandLine:  c.GetCommandLine(),
		StartType:    platform.StartType(word.Of(c.GetStartType())),
		Account:      c.GetAccount(),
		Dependencies: c.GetDependencies(),
	}
	if c.GetNoDependencies() {
		config.Dependencies = []string{}
	}
	if r := c.GetRecovery(); r != nil {
		config.Recovery = &platform.Recovery{
			Reset: r.GetReset_().AsDuration(), RepeatLast: r.GetRepeatLast(), OnErrorExit: r.GetOnErrorExit(),
		}
		for _, action := range r.GetActions() {
			config.Recovery.Actions = append(config.Recovery.Actions, platform.RecoveryAction{
				Kind: platform.RecoveryKind(action.GetKind()), After: action.GetAfter().AsDuration()})
		}
		for _, delay := range r.GetRestarts() {
			config.Recovery.Restarts = append(config.Recovery.Restarts, delay.AsDuration())
		}
	}
	return config
}
