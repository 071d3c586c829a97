package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/host"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/smallfile"
	"github.com/swdt-dev/swdt/internal/trace/record"
)

// standing is what decides how much a service logs.
type standing struct {
	CommandLine string
	Config      []byte // of its configuration file
	Exists      bool   // there is such a file
}

func (s standing) sum() string { return record.Sum(s.Config, s.Exists) }

func (s standing) equal(other standing) bool {
	return s.CommandLine == other.CommandLine && s.Exists == other.Exists && bytes.Equal(s.Config, other.Config)
}

// stopgap is whether the configuration is what takes the place of none.
func (s standing) stopgap() bool { return s.Exists && string(s.Config) == newConfig }

// seen is what stands on the node, and where.
type seen struct {
	standing
	service *agentv1.ServiceReply
	path    string // of the configuration file; empty: none is of interest
}

// look reads it. A service that is not there is host.ErrNoService.
func (s *subject) look(ctx context.Context, n *node.Node) (seen, error) {
	reply, err := n.Services.Get(ctx, &agentv1.GetServiceRequest{Name: s.name})
	if err != nil {
		return seen{}, fmt.Errorf("look at service %s: %w", s.name, err)
	}
	found := seen{service: reply, standing: standing{CommandLine: reply.GetConfig().GetCommandLine()}}
	if s.config == nil {
		return found, nil
	}
	if found.path, err = s.config(found.CommandLine); err != nil {
		return seen{}, err
	}
	found.Config, found.Exists, err = readFile(ctx, n, found.path)
	return found, err
}

// readFile is a file's content, and whether there is one.
func readFile(ctx context.Context, n *node.Node, path string) ([]byte, bool, error) {
	content, err := smallfile.Read(ctx, n, path)
	if errors.Is(err, host.ErrNotExist) {
		return nil, false, nil
	}
	return content, err == nil, err
}
