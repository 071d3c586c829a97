package agent

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/cri"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// reachTimeout is how long Reach waits if the request has no timeout.
const reachTimeout = 5 * time.Second

type networkService struct {
	agentv1.UnimplementedNetworkServer
	*session
}

func (s *networkService) Reach(ctx context.Context, request *agentv1.ReachRequest) (*agentv1.ReachReply, error) {
	timeout := request.GetTimeout().AsDuration()
	if timeout <= 0 {
		timeout = reachTimeout
	}
	reach, err := s.platform.Network.Reach(ctx, request.GetAddress(), timeout)
	if err != nil {
		return nil, err
	}
	return &agentv1.ReachReply{
		Outcome:   word.Value[agentv1.ReachOutcome](string(reach.Outcome)),
		Connected: reach.Address, Source: reach.Source, Took: durationpb.New(reach.Took), Detail: reach.Detail,
	}, nil
}

func (s *networkService) Resolve(ctx context.Context, request *agentv1.ResolveRequest) (*agentv1.ResolveReply, error) {
	addresses, err := s.platform.Network.Resolve(ctx, request.GetName())
	if err != nil {
		return nil, err
	}
	return &agentv1.ResolveReply{Addresses: addresses}, nil
}

func (s *networkService) HTTPGet(ctx context.Context, request *agentv1.HTTPGetRequest) (*agentv1.HTTPGetReply, error) {
	status, body, err := s.platform.Network.HTTPGet(ctx, request.GetUrl())
	if err != nil {
		return nil, err
	}
	return &agentv1.HTTPGetReply{Status: int32(status), Body: body}, nil
}

func (s *networkService) Listeners(ctx context.Context, _ *agentv1.ListenersRequest) (*agentv1.ListenersReply, error) {
	listeners, err := s.platform.Network.Listeners(ctx)
	if err != nil {
		return nil, err
	}
	processes, err := s.platform.Processes.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the processes that listen: %w", err)
	}
	byPID := map[uint32]platform.Process{}
	for _, p := range processes {
		byPID[p.PID] = p
	}
	delete(byPID, 0) // 0 is the idle process; as the owner of a port it means "unknown"
	reply := &agentv1.ListenersReply{}
	for _, l := range listeners {
		owner := byPID[l.PID]
		reply.Listeners = append(reply.Listeners, &agentv1.Listener{
			Address: l.Address, Port: uint32(l.Port), Pid: l.PID, Process: owner.Name, Image: owner.Image,
		})
	}
	return reply, nil
}

func (s *networkService) CRIVersion(ctx context.Context, request *agentv1.CRIVersionRequest) (
	*agentv1.CRIVersionReply, error) {
	version, err := cri.Version(ctx, s.pipe(request.GetPipe()))
	if err != nil {
		return nil, fmt.Errorf("get the container runtime's version: %w", err)
	}
	return &agentv1.CRIVersionReply{
		RuntimeName: version.RuntimeName, RuntimeVersion: version.RuntimeVersion,
		RuntimeApiVersion: version.RuntimeAPIVersion,
	}, nil
}

func (s *networkService) CRIStatus(ctx context.Context, request *agentv1.CRIStatusRequest) (
	*agentv1.CRIStatusReply, error) {
	status, err := cri.Status(ctx, s.pipe(request.GetPipe()), request.GetVerbose())
	if err != nil {
		return nil, fmt.Errorf("get the container runtime's status: %w", err)
	}
	return &agentv1.CRIStatusReply{Status: status}, nil
}

func (s *networkService) pipe(path string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return s.platform.Network.DialPipe(ctx, path) }
}
