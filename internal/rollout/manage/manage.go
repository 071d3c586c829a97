// Package manage is what a person does with the rollouts of a fleet: look at them, pause them, go on, end
// them and take them back.
//
//   - manage.go: the rollouts and the changes to them; report.go: the rollouts for people and for programs
//   - watch.go: the rollouts, each time they change; live.go: these reports on a terminal, in a log, as records
package manage

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/ui/remedy"
)

// manager is the field manager of the changes that a person orders.
const manager = "swdt"

// NotInstalledError reports a cluster without the kinds of a fleet.
type NotInstalledError struct{ Server string }

func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("%s has no fleet: install it with %s", e.Server, remedy.Command("fleet", "install"))
}

// NoRolloutError reports a rollout that does not exist.
type NoRolloutError struct {
	Name string
	Have []string // the rollouts that exist
}

func (e *NoRolloutError) Error() string {
	if len(e.Have) == 0 {
		return fmt.Sprintf("there is no rollout %s; the cluster has none", e.Name)
	}
	return fmt.Sprintf("there is no rollout %s; the cluster has %s", e.Name, strings.Join(e.Have, ", "))
}

// Order is a change to a rollout.
type Order string

// The orders. Pause keeps a rollout from touching further nodes, and Resume ends a pause and an abort.
const (
	Pause    Order = "pause"
	Resume   Order = "resume"
	Abort    Order = "abort"
	RollBack Order = "rollback"
)

// changes returns the fields of spec that the order sets, in one or more writes.
func (o Order) changes(r Rollout) []map[string]any {
	switch o {
	case Pause:
		return []map[string]any{{"paused": true}}
	case Abort:
		return []map[string]any{{"operation": fleetv1.OperationAbort}}
	case RollBack: // a pause would not keep a rollback from its nodes, and would mislead its reader
		rollBack := map[string]any{"operation": fleetv1.OperationRollBack, "paused": false}
		if r.State == rollout.StateRolledBack && r.Failed > 0 { // only another generation of the spec tries again
			return []map[string]any{{"operation": fleetv1.OperationAbort}, rollBack}
		}
		return []map[string]any{rollBack}
	}
	resume := map[string]any{"operation": fleetv1.OperationRoll, "paused": false}
	if failures := int(r.Failed) + len(r.gone()); r.spec.OnFailure == fleetv1.OnFailurePause && failures > 0 {
		resume["acceptedFailures"] = fleetv1.AcceptedFailures{Hash: r.Hash, Nodes: int32(failures)}
	}
	return []map[string]any{resume}
}

// Change gives the order to a rollout. The report has the rollout as it is then; its controller needs a
// moment to follow.
func Change(ctx context.Context, c *cluster.Cluster, name string, o Order, dryRun bool) (Report, error) {
	before, err := Look(ctx, c, name)
	if err != nil {
		return before, err
	}
	result := before.Rollouts[0]
	changes := o.changes(result)
	var now fleetv1.NodeRollout
	for _, fields := range changes {
		if now, err = patch(ctx, c, name, o, fields, dryRun); err != nil {
			return before, err
		}
	}
	result.Changed = now.Generation != result.generation || len(changes) > 1 ||
		dryRun && !equality.Semantic.DeepEqual(now.Spec, result.spec)
	result.set(now)
	return Report{Cluster: before.Cluster, Rollouts: []Rollout{result}, Unmade: before.Unmade}, nil
}

// patch sets fields of a rollout's spec, and returns the rollout as it is then.
func patch(ctx context.Context, c *cluster.Cluster, name string, o Order, fields map[string]any, dryRun bool) (
	now fleetv1.NodeRollout, err error) {
	text, err := json.Marshal(map[string]any{"spec": fields})
	if err != nil {
		return now, fmt.Errorf("%s rollout %s: %w", o, name, err)
	}
	options := metav1.PatchOptions{FieldManager: manager}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	resource := fleetv1.RolloutResource()
	u, err := c.Dynamic().Resource(resource).Patch(ctx, name, types.MergePatchType, text, options)
	if err != nil {
		return now, c.Failure(fmt.Sprintf("%s rollout %s", o, name), permission("patch", resource, name), err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &now); err != nil {
		return now, fmt.Errorf("read rollout %s: %w", name, err)
	}
	return now, nil
}

// Look reads the rollouts with these names, or all rollouts, with their nodes.
func Look(ctx context.Context, c *cluster.Cluster, names ...string) (Report, error) {
	report := Report{Cluster: c.Server(), Rollouts: []Rollout{}, Unmade: unmade(ctx, c)}
	rollouts, err := list[fleetv1.NodeRollout](ctx, c, fleetv1.RolloutResource())
	if err != nil {
		return report, err
	}
	states, err := list[fleetv1.NodeState](ctx, c, fleetv1.StateResource())
	if err != nil {
		return report, err
	}
	err = report.fill(rollouts, states, names)
	return report, err
}

// fill adds the rollouts with these names, or all rollouts, to the report.
func (r *Report) fill(rollouts []fleetv1.NodeRollout, states []fleetv1.NodeState, names []string) error {
	slices.SortFunc(rollouts, func(a, b fleetv1.NodeRollout) int { return cmp.Compare(a.Name, b.Name) })
	var have []string
	for _, one := range rollouts {
		have = append(have, one.Name)
		if len(names) == 0 || slices.Contains(names, one.Name) {
			r.Rollouts = append(r.Rollouts, newRollout(one, states))
		}
	}
	for _, name := range names {
		if !slices.Contains(have, name) {
			return &NoRolloutError{name, have}
		}
	}
	return nil
}

// list reads all objects of a kind, in pages.
func list[T any](ctx context.Context, c *cluster.Cluster, resource schema.GroupVersionResource) (all []T, err error) {
	read := func(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
		return c.Dynamic().Resource(resource).List(ctx, o)
	}
	var wrong error
	err = cluster.Pages(ctx, read, func(page *unstructured.UnstructuredList) {
		for _, u := range page.Items {
			var one T
			err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &one)
			if err != nil && wrong == nil {
				wrong = fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
			}
			all = append(all, one)
		}
	})
	switch {
	case err == nil:
		return all, wrong
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, &NotInstalledError{c.Server()}
	}
	return nil, c.Failure("list "+resource.Resource, permission("list", resource, ""), err)
}

func permission(verb string, resource schema.GroupVersionResource, name string) cluster.Permission {
	return cluster.Permission{Verb: verb, Group: resource.Group, Resource: resource.Resource, Name: name}
}
