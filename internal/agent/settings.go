package agent

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/settings"
)

type settingsService struct {
	agentv1.UnimplementedSettingsServer
	*session
}

func (s *settingsService) GetEnvironment(context.Context, *agentv1.GetEnvironmentRequest) (
	*agentv1.GetEnvironmentReply, error) {
	variables, err := settings.Environment(s.platform.Registry)
	if err != nil {
		return nil, err
	}
	reply := &agentv1.GetEnvironmentReply{}
	for _, v := range variables {
		reply.Variables = append(reply.Variables, &agentv1.EnvironmentVariable{Name: v.Name, Value: v.Value})
	}
	return reply, nil
}

func (s *settingsService) SetEnvironment(ctx context.Context, request *agentv1.SetEnvironmentRequest) (
	*agentv1.SetEnvironmentReply, error) {
	change := settings.EnvironmentChange{AddPath: request.GetAddPath(), RemovePath: request.GetRemovePath()}
	for _, v := range request.GetVariables() {
		change.Variables = append(change.Variables, settings.Variable{Name: v.GetName(), Value: v.GetValue(),
			Remove: v.GetRemove()})
	}
	s.settings.Lock()
	defer s.settings.Unlock()
	changed, err := settings.SetEnvironment(ctx, s.platform.Registry, s.platform.Machine, change)
	if err != nil {
		return nil, invalid(err)
	}
	return &agentv1.SetEnvironmentReply{Changed: changed}, nil
}

func (s *settingsService) GetHosts(context.Context, *agentv1.GetHostsRequest) (*agentv1.GetHostsReply, error) {
	entries, err := settings.Hosts(s.platform.Files)
	if err != nil {
		return nil, err
	}
	reply := &agentv1.GetHostsReply{}
	for _, e := range entries {
		reply.Entries = append(reply.Entries, &agentv1.HostsEntry{Name: e.Name, Address: e.Address})
	}
	return reply, nil
}

func (s *settingsService) SetHosts(ctx context.Context, request *agentv1.SetHostsRequest) (
	*agentv1.SetHostsReply, error) {
	var entries []settings.HostsEntry
	for _, e := range request.GetEntries() {
		entries = append(entries, settings.HostsEntry{Name: e.GetName(), Address: e.GetAddress()})
	}
	s.settings.Lock()
	defer s.settings.Unlock()
	changed, err := settings.SetHosts(ctx, s.platform.Files, entries)
	if err != nil {
		return nil, invalid(err)
	}
	return &agentv1.SetHostsReply{Changed: changed}, nil
}

// invalid converts a settings.InvalidError to the status InvalidArgument, and
// returns any other error unchanged.
func invalid(err error) error {
	var bad *settings.InvalidError
	if errors.As(err, &bad) {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return err
}
