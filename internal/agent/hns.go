package agent

import (
	"context"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

// computeService lists the objects of the Host Network Service and the Host
// Compute Service.
type computeService struct {
	agentv1.UnimplementedComputeServer
	*session
}

func (s *computeService) Objects(ctx context.Context, request *agentv1.ComputeRequest) (*agentv1.ComputeReply, error) {
	reply := &agentv1.ComputeReply{}
	if request.GetKind() == agentv1.ComputeKind_COMPUTE_KIND_SYSTEMS {
		systems, err := s.platform.Compute.Systems(ctx)
		for _, system := range systems {
			reply.Objects = append(reply.Objects, &agentv1.ComputeObject{
				Id: system.ID, Document: system.Summary, Properties: system.Properties, Failure: system.Failure,
			})
		}
		return reply, err
	}
	objects, err := s.platform.Compute.NetworkObjects(ctx, platform.NetworkKind(word.Of(request.GetKind())))
	for _, object := range objects {
		reply.Objects = append(reply.Objects, &agentv1.ComputeObject{Document: object})
	}
	return reply, err
}

func (s *computeService) Terminate(ctx context.Context, request *agentv1.ComputeRequest) (
	*agentv1.ComputeReply, error) {
	return &agentv1.ComputeReply{}, s.platform.Compute.Terminate(ctx, request.GetId())
}

func (s *computeService) Remove(ctx context.Context, request *agentv1.ComputeRequest) (*agentv1.ComputeReply, error) {
	return &agentv1.ComputeReply{}, s.platform.Compute.Remove(ctx, platform.NetworkKind(word.Of(request.GetKind())),
		request.GetId())
}
