package swap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// stopOrder returns the running services that a swap of these components stops,
// in the order of the stops: the components' own services and all their
// dependents, each after its own dependents. They start again in reverse order.
func stopOrder(ctx context.Context, p *platform.Platform, components []Component) ([]string, error) {
	o := ordering{platform: p, dependents: map[string][]string{}, visited: map[string]bool{}}
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

// ordering is a depth-first walk from services to their dependents.
type ordering struct {
	platform   *platform.Platform
	dependents map[string][]string // the dependents that the plan names, by lower-case name
	visited    map[string]bool
	running    []string
}

// visit appends a service to the order if it runs, after all services that depend on it.
func (o *ordering) visit(ctx context.Context, service string) error {
	key := strings.ToLower(service)
	if o.visited[key] {
		return nil
	}
	o.visited[key] = true
	status, err := o.platform.Services.Status(ctx, service)
	if errors.Is(err, fault.ErrNoService) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("query service %s: %w", service, err)
	}
	dependents, err := o.platform.Services.Dependents(ctx, service)
	if err != nil {
		return fmt.Errorf("list the dependents of service %s: %w", service, err)
	}
	dependents = append(dependents, o.dependents[key]...)
	slices.Sort(dependents)
	for _, dependent := range dependents {
		if err := o.visit(ctx, dependent); err != nil {
			return err
		}
	}
	if status.State != platform.Stopped && status.State != platform.StopPending {
		o.running = append(o.running, status.Name)
	}
	return nil
}
