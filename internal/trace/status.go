package trace

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/format/commandline"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// State is the state of a service's trace.
type State string

const (
	IsOff       State = "off"
	IsOn        State = "on"
	Interrupted State = "interrupted" // `on` or `off` did not complete
	Changed     State = "changed"     // something other than swdt trace has changed the service since `on`
	NoService   State = "noService"
)

// ServiceStatus is the state of a service.
type ServiceStatus struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Level is the service's log level according to the node's present state.
	Level string `json:"level"`
	// Before is the service's log level before the trace.
	Before  string     `json:"before"`
	OTLP    string     `json:"otlp"`
	Since   *time.Time `json:"since"`
	By      string     `json:"by"`
	LogFile string     `json:"logFile"`
	// Differences lists the changes that something other than swdt trace has made since the trace
	// was turned on.
	Differences []string `json:"differences"`
}

// Status returns, for each service, whether and how it is traced. It changes nothing.
func Status(ctx context.Context, n *node.Node) ([]ServiceStatus, error) {
	r, err := load(ctx, n)
	if err != nil {
		return nil, err
	}
	var all []ServiceStatus
	for _, s := range (Options{}).subjects() {
		one, err := s.status(ctx, n, r)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (s *subject) status(ctx context.Context, n *node.Node, r tracerecord.Record) (ServiceStatus, error) {
	status := ServiceStatus{Name: s.name, State: IsOff}
	entry, known := r.Services[s.name]
	if known {
		status.OTLP, status.Since, status.By = entry.Wish.OTLP, &entry.Since, entry.By
	}
	is, err := s.look(ctx, n)
	if errors.Is(err, fault.ErrNoService) {
		status.State = NoService
		return status, nil
	}
	if err != nil {
		return status, err
	}
	status.Level = s.level(is.logSettings)
	status.LogFile = strings.ReplaceAll(commandline.Flag(is.CommandLine, "log-file"), "/", `\`)
	if !known {
		return status, nil
	}
	if was, err := before(ctx, n, entry); err == nil {
		status.Before = s.level(was)
	}
	entry, at := where(entry, is.logSettings)
	switch {
	case at == between || at == halfway:
		status.State = Changed
		var changed *ChangedError
		if errors.As(s.changedError(ctx, n, entry, is, "1"), &changed) {
			status.Differences = changed.Differences
		}
	case at == with && entry.On:
		status.State = IsOn
	default:
		status.State = Interrupted
	}
	return status, nil
}
