package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/smallfile"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/tracerecord"
)

// logSettings is the command line and configuration file of a service, which determine how
// much the service logs.
type logSettings struct {
	CommandLine string
	Config      []byte // the content of the service's configuration file
	Exists      bool   // the file exists
	// Program is the command line of the service's program, behind its wrappers; "": unknown.
	Program string
}

func (s logSettings) sum() string { return tracerecord.Sum(s.Config, s.Exists) }

func (s logSettings) equal(other logSettings) bool {
	return s.CommandLine == other.CommandLine && s.Exists == other.Exists && bytes.Equal(s.Config, other.Config)
}

// stopgap reports whether the configuration file is newConfig, which trace writes for a containerd
// without a configuration file.
func (s logSettings) stopgap() bool { return s.Exists && string(s.Config) == newConfig }

// observed is the state of a service on the node, as far as it determines how much the service
// logs.
type observed struct {
	logSettings
	service *agentv1.ServiceReply
	path    string // path of the configuration file; empty: the service has no configuration file
}

// look reads the state of the service from the node. If the service does not exist, the
// error is fault.ErrNoService.
func (s *subject) look(ctx context.Context, n *node.Node) (observed, error) {
	reply, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: s.name})
	if err != nil {
		return observed{}, fmt.Errorf("look at service %s: %w", s.name, err)
	}
	found := observed{service: reply, logSettings: logSettings{
		CommandLine: reply.GetConfig().GetCommandLine(), Program: reply.GetProgram().GetCommandLine()}}
	if s.config == nil {
		return found, nil
	}
	if found.Program == "" {
		return observed{}, fmt.Errorf("find the configuration of service %s: its program is unknown: %s: register it as a "+
			"native service", s.name, reply.GetProgram().GetUnknown())
	}
	if found.path, err = s.config(found.Program); err != nil {
		return observed{}, err
	}
	found.Config, found.Exists, err = readFile(ctx, n, found.path)
	return found, err
}

// readFile returns a file's content, and whether the file exists.
func readFile(ctx context.Context, n *node.Node, path string) ([]byte, bool, error) {
	content, err := smallfile.Read(ctx, n, path)
	if errors.Is(err, fault.ErrNotExist) {
		return nil, false, nil
	}
	return content, err == nil, err
}
