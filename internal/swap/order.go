package swap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/host"
)

// stopOrder names the running services that a swap of these components stops:
// theirs and all that depend on them, dependents first. To start them again,
// read it backwards.
func stopOrder(ctx context.Context, h *host.Host, components []Component) ([]string, error) {
	o := ordering{host: h, dependents: map[string][]string{}, visited: map[string]bool{}}
	for _, c := range components {
		for _, needed := range c.DependsOn {
			key := strings.ToLower(needed)
			o.dependents[key] = append(o.dependents[key], c.Service)
		}
	}
	for _, c := range components {
		if c.Service == "" {
			continue
		}
		if err := o.visit(ctx, c.Service); err != nil {
			return nil, err
		}
	}
	return o.running, nil
}

// ordering is a depth-first walk from services to what depends on them.
type ordering struct {
	host       *host.Host
	dependents map[string][]string // that the plan knows of, by lower-case name
	visited    map[string]bool
	running    []string
}

// visit appends service to the order, after everything that depends on it.
func (o *ordering) visit(ctx context.Context, service string) error {
	key := strings.ToLower(service)
	if o.visited[key] {
		return nil
	}
	o.visited[key] = true
	status, err := o.host.Services.Status(ctx, service)
	if errors.Is(err, host.ErrNoService) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at service %s: %w", service, err)
	}
	dependents, err := o.host.Services.Dependents(ctx, service)
	if err != nil {
		return fmt.Errorf("look for services that depend on %s: %w", service, err)
	}
	dependents = append(dependents, o.dependents[key]...)
	slices.Sort(dependents)
	for _, dependent := range dependents {
		if err := o.visit(ctx, dependent); err != nil {
			return err
		}
	}
	if status.State != host.Stopped && status.State != host.StopPending {
		o.running = append(o.running, status.Name)
	}
	return nil
}
