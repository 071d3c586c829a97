// Package installation applies the objects of a fleet's installation to a cluster, and removes them: the
// kinds, the controller, and the program on the nodes, with the rules that limit both.
package installation

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/rollout/manifests"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Options configure an installation.
type Options struct {
	Settings manifests.Settings
	DryRun   bool
	Force    bool // take the fields that other managers own
}

// Run applies the objects by server-side apply, and changes nothing that is as it should be. A dry run
// has the API server try each object without storing it.
func Run(ctx context.Context, c *cluster.Cluster, o Options, r ui.Reporter) ([]plan.StepResult, error) {
	objects, err := manifests.Objects(o.Settings)
	if err != nil {
		return nil, err
	}
	server := cni.NewServer(c)
	server.Take = o.taking()
	var steps []plan.Step
	for _, object := range objects {
		steps = append(steps, &step{server: server, object: object, force: o.Force})
	}
	return plan.Run(ctx, nil, steps, plan.Options{DryRun: o.DryRun, Ordered: true, Elsewhere: "the cluster"}, r)
}

// taking returns the arguments of the same installation that takes fields of other managers.
func (o Options) taking() []string {
	arguments := []string{"fleet", "install"}
	for flag, value := range o.Settings.Flags() {
		arguments = append(arguments, flag, value)
	}
	return append(arguments, "--force")
}

// step applies one object.
type step struct {
	server *cni.Server
	object *unstructured.Unstructured
	force  bool
}

func (s *step) Name() string { return cni.RefOf(s.object).String() }

func (s *step) Plan(ctx context.Context, _ *node.Node) (plan.Change, error) {
	d, err := s.server.Compare(ctx, s.object, s.force)
	switch {
	case err != nil:
		return plan.Change{}, err
	case d.Create:
		return plan.Change{Needed: true, Summary: "create"}, nil
	case d.Needed():
		return plan.Change{Needed: true, Summary: fmt.Sprintf("change %d fields", len(d.Fields)), Detail: d.String()}, nil
	}
	return plan.Change{}, nil
}

func (s *step) Apply(ctx context.Context, _ *node.Node, _ ui.Reporter) (plan.Outcome, error) {
	d, err := s.server.Compare(ctx, s.object, s.force)
	if err != nil || !d.Needed() {
		return plan.Outcome{}, err
	}
	return plan.Outcome{}, s.server.Apply(ctx, d)
}
