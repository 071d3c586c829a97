package agent

import (
	"context"
	"fmt"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/wire/word"
)

type featuresService struct {
	agentv1.UnimplementedFeaturesServer
	*session
}

func (s *featuresService) Get(ctx context.Context, request *agentv1.GetFeaturesRequest) (
	*agentv1.FeaturesReply, error) {
	reply := &agentv1.FeaturesReply{}
	for _, name := range request.GetNames() {
		state, err := s.platform.Features.State(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("read the state of Windows feature %s: %w", name, err)
		}
		reply.Features = append(reply.Features, &agentv1.Feature{
			Name: name, State: word.Value[agentv1.FeatureState](string(state)),
		})
	}
	return reply, nil
}

func (s *featuresService) Set(ctx context.Context, request *agentv1.SetFeatureRequest) (
	*agentv1.SetFeatureReply, error) {
	set, verb := s.platform.Features.Disable, "disable"
	if request.GetEnabled() {
		set, verb = s.platform.Features.Enable, "enable"
	}
	reboot, err := set(ctx, request.GetName())
	if err != nil {
		return nil, fmt.Errorf("%s Windows feature %s: %w", verb, request.GetName(), err)
	}
	return &agentv1.SetFeatureReply{RebootRequired: reboot}, nil
}
