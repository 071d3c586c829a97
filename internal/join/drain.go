package join

import (
	"context"
	"fmt"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/ui"
)

// drain has the pods leave before the first of the steps that restart a service.
// The node step lets them back.
type drain struct {
	*joining
	steps []plan.Step
}

func (s *drain) Name() string { return stepDrain }

// disruptive are the steps that restart containerd or kubelet.
func disruptive() []string {
	return []string{stepContainerdFiles, stepContainerdConfig, stepContainerdService, stepKubernetesFiles,
		stepKubeletConfig, stepKubeletService, stepKubelet}
}

func (s *drain) Plan(ctx context.Context, n *node.Node) (plan.Change, error) {
	r, err := load(ctx, n)
	if err != nil || !r.Joined {
		return plan.Change{}, err
	}
	is, err := s.options.Cluster.Node(ctx, r.Node)
	if err != nil || !is.Exists {
		return plan.Change{}, err
	}
	for _, step := range s.steps {
		if !containsFold(disruptive(), step.Name()) {
			continue
		}
		change, err := step.Plan(ctx, n)
		if err != nil {
			return plan.Change{}, fmt.Errorf("%s: %w", step.Name(), err)
		}
		if change.Needed {
			return plan.Change{Needed: true, Summary: "drain " + r.Node}, nil
		}
	}
	return plan.Change{}, nil
}

func (s *drain) Apply(ctx context.Context, n *node.Node, reporter ui.Reporter) (plan.Outcome, error) {
	r, err := load(ctx, n)
	if err != nil {
		return plan.Outcome{}, err
	}
	done, err := s.options.Cluster.Drain(ctx, r.Node, *s.options.Drain, reporter)
	return plan.Outcome{Message: fmt.Sprintf("%d pods left", len(done.Evicted))}, err
}
