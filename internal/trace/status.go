package trace

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/commandline"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/trace/record"
)

// State is whether a service is traced.
type State string

const (
	IsOff       State = "off"
	IsOn        State = "on"
	Interrupted State = "interrupted" // `on` or `off` did not come to its end
	Changed     State = "changed"     // by somebody else since
	NoService   State = "noService"
)

// ServiceStatus is what is so of a service.
type ServiceStatus struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Level is what it logs at with what stands on the node.
	Level string `json:"level,omitempty"`
	// Before is what it logged at.
	Before  string     `json:"before,omitempty"`
	OTLP    string     `json:"otlp,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	By      string     `json:"by,omitempty"`
	LogFile string     `json:"logFile,omitempty"`
	// Differences are what somebody changed.
	Differences []string `json:"differences,omitempty"`
}

// Status says what is on. It changes nothing.
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

func (s *subject) status(ctx context.Context, n *node.Node, r record.Record) (ServiceStatus, error) {
	status := ServiceStatus{Name: s.name, State: IsOff}
	entry, known := r.Services[s.name]
	if known {
		status.OTLP, status.Since, status.By = entry.Wish.OTLP, &entry.Since, entry.By
	}
	is, err := s.look(ctx, n)
	if errors.Is(err, host.ErrNoService) {
		status.State = NoService
		return status, nil
	}
	if err != nil {
		return status, err
	}
	status.Level = s.level(is.standing)
	status.LogFile = strings.ReplaceAll(commandline.Flag(is.CommandLine, "log-file"), "/", `\`)
	if !known {
		return status, nil
	}
	if was, err := before(ctx, n, entry); err == nil {
		status.Before = s.level(was)
	}
	entry, at := where(entry, is.standing)
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
