// Package services reads the services of Windows on nodes, for `swdt services`.
package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// Service is one service of a node. The configuration is known only if the service was asked for by its name.
type Service struct {
	Name        string     `json:"name"`
	DisplayName string     `json:"displayName"`
	State       string     `json:"state"`    // running, stopped, startPending, …
	PID         uint32     `json:"pid"`      // 0: it does not run
	Started     *time.Time `json:"started"`  // null: it does not run, or its start is unknown
	ExitCode    uint32     `json:"exitCode"` // of its last end, by Windows; 1066: see specificExitCode
	// SpecificExitCode is the service's own code of its last end.
	SpecificExitCode uint32         `json:"specificExitCode"`
	Configuration    *Configuration `json:"configuration"` // null: not asked for
}

// Configuration is how Windows starts a service.
type Configuration struct {
	StartType    string   `json:"startType"` // auto, manual or disabled
	Account      string   `json:"account"`
	CommandLine  string   `json:"commandLine"`
	Dependencies []string `json:"dependencies"` // the services that it needs
	Dependents   []string `json:"dependents"`   // the services that need it
}

// List is the services of one node.
type List []Service

// UnknownError reports a name that no service of the node has.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no service %s on the node; `swdt services` lists them", e.Name)
}

// Look returns the services of a node by their names, or those with the given names in their order, with their
// configuration. The error is an *UnknownError for a name that no service has.
func Look(ctx context.Context, n *node.Node, names []string) (List, error) {
	if len(names) > 0 {
		return lookAt(ctx, n, names)
	}
	reply, err := n.Services.List(ctx, &agentv1.ListServicesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list the node's services: %w", err)
	}
	var all List
	for _, s := range reply.GetServices() {
		all = append(all, of(s))
	}
	slices.SortFunc(all, func(a, b Service) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

func lookAt(ctx context.Context, n *node.Node, names []string) (all List, err error) {
	for _, name := range names {
		reply, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: name})
		switch {
		case errors.Is(err, fault.ErrNoService):
			return nil, &UnknownError{Name: name}
		case err != nil:
			return nil, fmt.Errorf("look at service %s: %w", name, err)
		}
		s, c := of(reply.GetStatus()), reply.GetConfig()
		s.Configuration = &Configuration{StartType: word.Of(c.GetStartType()), Account: c.GetAccount(),
			CommandLine: c.GetCommandLine(), Dependencies: listed(c.GetDependencies()), Dependents: listed(reply.GetDependents())}
		all = append(all, s)
	}
	return all, nil
}

func listed(names []string) []string { return append([]string{}, names...) }

func of(s *agentv1.ServiceStatus) Service {
	service := Service{Name: s.GetName(), DisplayName: s.GetDisplayName(), State: word.Of(s.GetState()), PID: s.GetPid(),
		ExitCode: s.GetExitCode(), SpecificExitCode: s.GetSpecificExitCode()}
	if started := s.GetStarted().AsTime(); s.GetStarted().IsValid() && started.Unix() > 0 {
		service.Started = &started
	}
	return service
}

// Report is the result of `swdt services`.
type Report struct {
	Nodes []NodeReport `json:"nodes"`

	results []fleet.Result[List]
	detail  bool
}

// NodeReport has the services of one node.
type NodeReport struct {
	fleet.Outcome
	Services []Service `json:"services"`
}

// NewReport returns the report of the services of nodes. detail: they were asked for by their names.
func NewReport(results []fleet.Result[List], detail bool) Report {
	report := Report{Nodes: []NodeReport{}, results: results, detail: detail}
	for _, result := range results {
		report.Nodes = append(report.Nodes, NodeReport{result.Outcome(), append([]Service{}, result.Value...)})
	}
	return report
}

// Names returns the services of all nodes, as service/NAME.
func (r Report) Names() (all []string) {
	for _, n := range r.Nodes {
		for _, s := range n.Services {
			all = append(all, "service/"+s.Name)
		}
	}
	return all
}

// Columns returns the columns of the tables, of the usual one and of the one with details. Neither has more of them with
// -o wide.
func Columns(bool) []string {
	all := List{}.table().Header
	for _, column := range (List{}).details().Header {
		if !slices.Contains(all, column) {
			all = append(all, column)
		}
	}
	return all
}

// WriteText writes the services of all nodes that answered.
func (r Report) WriteText(p *ui.Page) error {
	return fleet.WriteListings(p, r.results, func(l List) ui.Listing {
		if r.detail {
			return l.details()
		}
		return l.table()
	})
}

func (l List) table() ui.Listing {
	t := ui.Listing{Nothing: "no services", Header: []string{"NAME", "STATE", "PID", "STARTED", "DISPLAY NAME"}}
	for _, s := range l {
		t.Rows = append(t.Rows, []string{s.Name, s.coloured(), s.process(), s.since(), s.DisplayName})
	}
	return t
}

func (l List) details() ui.Listing {
	t := ui.Listing{Header: []string{"NAME", "STATE", "PID", "START", "NEEDS", "ACCOUNT", "COMMAND LINE"}}
	for _, s := range l {
		c := s.Configuration
		t.Rows = append(t.Rows, []string{s.Name, s.coloured(), s.process(), c.StartType, strings.Join(c.Dependencies, ","),
			c.Account, c.CommandLine})
	}
	return t
}

// coloured returns the state in words, with a code if the service ended with one.
func (s Service) coloured() string {
	words := ui.Words(s.State)
	switch code := s.ExitCode; {
	case s.State == word.Of(agentv1.ServiceState_SERVICE_STATE_RUNNING):
		return words
	case s.State != word.Of(agentv1.ServiceState_SERVICE_STATE_STOPPED):
		return ui.Warn(words)
	case code == ownCode:
		return ui.Bad(fmt.Sprintf("%s (own code %d)", words, s.SpecificExitCode))
	case code != 0 && code != neverStarted:
		return ui.Bad(fmt.Sprintf("%s (code %d)", words, code))
	}
	return words
}

// These are exit codes that Windows gives a service: ERROR_SERVICE_SPECIFIC_ERROR and ERROR_SERVICE_NEVER_STARTED
// (winerror.h).
const (
	ownCode      = 1066
	neverStarted = 1077
)

func (s Service) process() string {
	if s.PID == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(s.PID), 10)
}

func (s Service) since() string {
	if s.Started == nil {
		return ""
	}
	return s.Started.UTC().Format(time.DateTime)
}
