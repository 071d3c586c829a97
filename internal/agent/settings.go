package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/settings"
	"github.com/swdt-dev/swdt/internal/wire/fault"
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

func (s *settingsService) ListRoots(context.Context, *agentv1.ListRootsRequest) (*agentv1.ListRootsReply, error) {
	all, err := s.platform.Roots.List()
	if err != nil {
		return nil, err
	}
	reply := &agentv1.ListRootsReply{}
	for _, certificate := range all {
		reply.Sha256 = append(reply.Sha256, sha256Of(certificate))
	}
	return reply, nil
}

func (s *settingsService) ChangeRoots(_ context.Context, request *agentv1.ChangeRootsRequest) (
	*agentv1.ChangeRootsReply, error) {
	s.settings.Lock()
	defer s.settings.Unlock()
	for _, certificate := range request.GetAdd() {
		if err := s.platform.Roots.Add(certificate); err != nil {
			return nil, err
		}
	}
	if len(request.GetRemove()) == 0 {
		return &agentv1.ChangeRootsReply{}, nil
	}
	all, err := s.platform.Roots.List()
	if err != nil {
		return nil, err
	}
	for _, certificate := range all {
		if !slices.Contains(request.GetRemove(), sha256Of(certificate)) {
			continue
		}
		if err := s.platform.Roots.Remove(certificate); err != nil && !errors.Is(err, fault.ErrNotExist) {
			return nil, err
		}
	}
	return &agentv1.ChangeRootsReply{}, nil
}

func sha256Of(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
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
