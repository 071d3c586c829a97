package swap

import (
	"context"
	"errors"
	"fmt"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/hashcache"
	"github.com/swdt-dev/swdt/internal/agent/internal/messages"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/layout"
)

// inspection is the inspection of one component. Its question and its answer have the types of the
// RPC's messages, since only the RPC uses them.
type inspection struct {
	platform  *platform.Platform
	hashes    *hashcache.Cache
	processes []platform.Process
	question  *agentv1.InspectComponent
	state     *agentv1.ComponentState
	service   platform.ServiceStatus // valid only if state contains a service
}

// Inspect inspects a component. It writes nothing. The parameter `processes` lists the machine's
// processes. If Inspect returns an error, the returned state has the findings up to the error.
func Inspect(ctx context.Context, p *platform.Platform, hashes *hashcache.Cache, question *agentv1.InspectComponent,
	processes []platform.Process) (*agentv1.ComponentState, error) {
	i := &inspection{
		platform: p, hashes: hashes, processes: processes, question: question,
		state: &agentv1.ComponentState{Name: question.GetName()},
	}
	return i.state, i.run(ctx)
}

func (i *inspection) run(ctx context.Context) error {
	if err := i.inspectService(ctx); err != nil {
		return err
	}
	destination := i.question.GetDestination()
	i.state.Leftovers = leftovers(i.platform.Files, destination)
	info, err := i.platform.Files.Stat(destination)
	switch {
	case errors.Is(err, fault.ErrNotExist):
	case err != nil:
		return fmt.Errorf("inspect %s: %w", destination, err)
	case info.Folder:
		i.state.Exists, i.state.Folder = true, true
		return nil
	default:
		i.state.Exists = true
		if i.state.Sha256, i.state.Size, err = i.hashes.Hash(ctx, destination); err != nil {
			return fmt.Errorf("hash %s: %w", destination, err)
		}
		i.state.Version = i.version(ctx, destination)
		i.state.Outdated = i.outdated(info)
	}
	if i.question.GetService() != "" && i.state.GetService() == nil {
		if err := i.inspectOthers(ctx); err != nil {
			return err
		}
	}
	return i.inspectPrevious(ctx)
}

// inspectOthers finds the other services that run the binary. If there are none, it returns the names of all services,
// since the component's service may have a similar name.
func (i *inspection) inspectOthers(ctx context.Context) error {
	all, err := i.platform.Services.List(ctx)
	if err != nil {
		return fmt.Errorf("list the services: %w", err)
	}
	i.state.RunBy = runBy(ctx, i.platform.Services, all, i.question.GetDestination())
	if len(i.state.GetRunBy()) > 0 {
		return nil
	}
	for _, s := range all {
		i.state.Services = append(i.state.Services, s.Name)
	}
	return nil
}

func (i *inspection) inspectService(ctx context.Context) error {
	service := i.question.GetService()
	if service == "" {
		return nil
	}
	status, err := i.platform.Services.Status(ctx, service)
	if errors.Is(err, fault.ErrNoService) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("query service %s: %w", service, err)
	}
	i.service = status
	i.state.Service = messages.ServiceStatus(status, startOf(i.processes, status.PID))
	config, err := i.platform.Services.Config(ctx, service)
	if err != nil {
		return fmt.Errorf("read the registration of service %s: %w", service, err)
	}
	i.state.ServiceConfig = messages.ServiceConfig(config)
	i.inspectProgram(ctx, config)
	return nil
}

// startOf returns the start time of a process. It returns the zero time if the start time is
// unknown or pid is 0.
func startOf(processes []platform.Process, pid uint32) time.Time {
	for _, p := range processes {
		if p.PID == pid && pid != 0 {
			return p.Started
		}
	}
	return time.Time{}
}

func (i *inspection) inspectPrevious(ctx context.Context) error {
	path := layout.Previous(i.question.GetDestination())
	sum, err := hashOrNothing(ctx, i.hashes, path)
	if err != nil {
		return fmt.Errorf("inspect the previous binary: %w", err)
	}
	if sum != "" {
		i.state.PreviousSha256, i.state.PreviousVersion = sum, i.version(ctx, path)
	}
	return nil
}

// version returns the version of a binary, or "" if it is not to be asked.
func (i *inspection) version(ctx context.Context, path string) string {
	if !i.question.GetAskVersion() {
		return ""
	}
	return versionOf(ctx, i.platform, i.hashes, path)
}
