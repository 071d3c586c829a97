package setup

import (
	"context"
	"fmt"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// features enables Windows optional features: all in one step, so that they share one
// reboot.
type features struct {
	node   *node.Node
	wanted []string
}

func (s *features) Name() string { return "features" }

func (s *features) Plan(ctx context.Context) (plan.Change, error) {
	disabled, pending, err := s.compare(ctx, s.node)
	if err != nil {
		return plan.Change{}, err
	}
	var parts []string
	if len(disabled) > 0 {
		parts = append(parts, "enable "+strings.Join(disabled, ", "))
	}
	if len(pending) > 0 {
		parts = append(parts, "finish enabling "+strings.Join(pending, ", ")+" by a reboot")
	}
	return plan.Change{Needed: len(parts) > 0, Summary: strings.Join(parts, "; ")}, nil
}

func (s *features) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	disabled, pending, err := s.compare(ctx, s.node)
	if err != nil {
		return plan.Outcome{}, err
	}
	outcome := plan.Outcome{RebootRequired: len(pending) > 0}
	for _, name := range disabled {
		r.Step("enabling the feature %s", name)
		reply, err := s.node.Features.Set(ctx, &agentv1.SetFeatureRequest{Name: name, Enabled: true})
		if err != nil {
			return plan.Outcome{}, fmt.Errorf("enable the feature %s: %w", name, err)
		}
		outcome.RebootRequired = outcome.RebootRequired || reply.GetRebootRequired()
	}
	return outcome, nil
}

// compare returns the features that are disabled, and the features that the next reboot
// will enable.
func (s *features) compare(ctx context.Context, n *node.Node) (disabled, pending []string, err error) {
	reply, err := n.Features.Get(ctx, &agentv1.GetFeaturesRequest{Names: s.wanted})
	if err != nil {
		return nil, nil, fmt.Errorf("query the features %s: %w", strings.Join(s.wanted, ", "), err)
	}
	for _, feature := range reply.GetFeatures() {
		switch feature.GetState() {
		case agentv1.FeatureState_FEATURE_STATE_ENABLED:
		case agentv1.FeatureState_FEATURE_STATE_ENABLE_PENDING:
			pending = append(pending, feature.GetName())
		default:
			disabled = append(disabled, feature.GetName())
		}
	}
	return disabled, pending, nil
}
