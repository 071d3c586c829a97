package agent

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/messages"
	"github.com/swdt-dev/swdt/internal/agent/internal/program"
	"github.com/swdt-dev/swdt/internal/agent/internal/scm"
	"github.com/swdt-dev/swdt/internal/platform"
)

// defaultStartTimeout is the SCM's own timeout for a service.
const defaultStartTimeout = 30 * time.Second

type servicesService struct {
	agentv1.UnimplementedServicesServer
	*session
}

func (s *servicesService) List(ctx context.Context, _ *agentv1.ListServicesRequest) (
	*agentv1.ListServicesReply, error) {
	statuses, err := s.platform.Services.List(ctx)
	if err != nil {
		return nil, err
	}
	started := s.processStarts(ctx)
	reply := &agentv1.ListServicesReply{}
	for _, status := range statuses {
		reply.Services = append(reply.Services, messages.ServiceStatus(status, started[status.PID]))
	}
	return reply, nil
}

func (s *servicesService) Get(ctx context.Context, request *agentv1.GetServiceRequest) (*agentv1.ServiceReply, error) {
	return s.reply(ctx, request.GetName())
}

func (s *servicesService) reply(ctx context.Context, name string) (*agentv1.ServiceReply, error) {
	status, err := s.platform.Services.Status(ctx, name)
	if err != nil {
		return nil, err
	}
	config, err := s.platform.Services.Config(ctx, name)
	if err != nil {
		return nil, err
	}
	dependents, err := s.platform.Services.Dependents(ctx, name)
	if err != nil {
		return nil, err
	}
	var started time.Time
	if status.PID != 0 {
		started = s.processStarts(ctx)[status.PID]
	}
	return &agentv1.ServiceReply{
		Status:     messages.ServiceStatus(status, started),
		Config:     messages.ServiceConfig(config),
		Dependents: dependents,
		Program:    program.Message(program.Of(s.platform, config)),
	}, nil
}

// processStarts returns the start time of each process by PID. If the processes cannot be listed,
// it logs the error and returns nil, since the rest of a service's status is valid without start
// times.
func (s *session) processStarts(ctx context.Context) map[uint32]time.Time {
	processes, err := s.platform.Processes.List(ctx)
	if err != nil {
		s.log.Printf("list processes: %v", err)
		return nil
	}
	return startsOf(processes)
}

func startsOf(processes []platform.Process) map[uint32]time.Time {
	started := make(map[uint32]time.Time, len(processes))
	for _, p := range processes {
		started[p.PID] = p.Started
	}
	return started
}

func (s *servicesService) Create(ctx context.Context, request *agentv1.ServiceConfig) (*agentv1.ServiceReply, error) {
	if err := s.durable(ctx, s.platform.Services.Create(ctx, messages.PlatformConfig(request))); err != nil {
		return nil, err
	}
	return s.reply(ctx, request.GetName())
}

func (s *servicesService) Configure(ctx context.Context, request *agentv1.ServiceConfig) (
	*agentv1.ServiceReply, error) {
	if err := s.durable(ctx, s.platform.Services.Configure(ctx, messages.PlatformConfig(request))); err != nil {
		return nil, err
	}
	return s.reply(ctx, request.GetName())
}

func (s *servicesService) Delete(ctx context.Context, request *agentv1.DeleteServiceRequest) (
	*agentv1.DeleteServiceReply, error) {
	if err := s.durable(ctx, s.platform.Services.Delete(ctx, request.GetName())); err != nil {
		return nil, err
	}
	return &agentv1.DeleteServiceReply{}, nil
}

// durable returns the error of a change or, if there is none, waits until the change is on the disk: swdt notes next
// that the change is done, in a file that a power cut does not lose.
func (s *servicesService) durable(ctx context.Context, changed error) error {
	if changed != nil {
		return changed
	}
	return s.platform.Services.Flush(ctx)
}

func (s *servicesService) Start(ctx context.Context, request *agentv1.StartServiceRequest) (
	*agentv1.ServiceReply, error) {
	if _, err := scm.Start(ctx, s.platform, request.GetName(), request.GetArgs(),
		orDefault(request.GetTimeout(), defaultStartTimeout)); err != nil {
		return nil, err
	}
	return s.reply(ctx, request.GetName())
}

func (s *servicesService) Stop(ctx context.Context, request *agentv1.StopServiceRequest) (
	*agentv1.StopServiceReply, error) {
	options := scm.StopOptions{Timeout: orDefault(request.GetTimeout(), scm.DefaultStopTimeout)}
	stopped, err := scm.Stop(ctx, s.platform, request.GetName(), options)
	if err != nil {
		return nil, err
	}
	return &agentv1.StopServiceReply{Stopped: stopped}, nil
}

func orDefault(d *durationpb.Duration, otherwise time.Duration) time.Duration {
	if d.AsDuration() > 0 {
		return d.AsDuration()
	}
	return otherwise
}
