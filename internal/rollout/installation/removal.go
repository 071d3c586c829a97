package installation

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
	"github.com/swdt-dev/swdt/internal/ui"
)

// RemovalOptions configure a removal.
type RemovalOptions struct {
	DryRun bool
	Wait   time.Duration // for the end of each object
}

// Remove removes the objects of the installation: the programs first and the kinds, with all rollouts and
// NodeStates, last. So no program runs without its rights. The nodes keep their binaries.
func Remove(ctx context.Context, c *cluster.Cluster, o RemovalOptions, r ui.Reporter) ([]plan.StepResult, error) {
	objects, err := manifests.Objects(manifests.Settings{})
	if err != nil {
		return nil, err
	}
	server := cni.NewServer(c)
	var steps []plan.Step
	for _, object := range slices.Backward(objects) {
		steps = append(steps, &removal{server: server, object: object, wait: o.Wait})
	}
	return plan.Run(ctx, steps, plan.Options{DryRun: o.DryRun, Ordered: true, Elsewhere: "the cluster"}, r)
}

// removal removes one object.
type removal struct {
	server *cni.Server
	object *unstructured.Unstructured
	wait   time.Duration
}

func (s *removal) Name() string { return cni.RefOf(s.object).String() }

func (s *removal) Plan(ctx context.Context) (plan.Change, error) {
	live, err := s.server.Get(ctx, s.object)
	if err != nil || live == nil {
		return plan.Change{}, err
	}
	return plan.Change{Needed: true, Summary: "remove"}, nil
}

func (s *removal) Apply(ctx context.Context, r ui.Reporter) (plan.Outcome, error) {
	live, err := s.server.Get(ctx, s.object)
	if err != nil || live == nil {
		return plan.Outcome{}, err
	}
	waiting := func(state string) { r.Info("%s", state) }
	return plan.Outcome{}, s.server.DeleteAndWait(ctx, []*unstructured.Unstructured{live}, s.wait, waiting)
}
