package onnode

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/rollout/content"
)

// confirm checks an order, once, before anything is done for it: whoever has the controller's token can write any order.
// It returns why the node refuses the order; "": it may be carried out. An error means that confirm could not find that
// out, so that nothing may be done yet.
//
// The API server has the NodeRollout, which the controller cannot write. The node itself has the status of its
// NodeState and the record, which the controller cannot write either.
func (w *order) confirm(ctx context.Context) (refusal string, err error) {
	if w.confirmed {
		return "", nil
	}
	s := w.state
	w.fetched = w.fetched || s.Status.Hash == s.Spec.Hash && s.Status.Action == s.Spec.Action &&
		s.Status.Phase == fleetv1.PhaseFetched
	if refusal, err = w.doubt(ctx); err != nil {
		return "", fmt.Errorf("confirm the order: %w", err)
	}
	w.confirmed = refusal == ""
	return refusal, nil
}

func (w *order) doubt(ctx context.Context) (refusal string, err error) {
	spec := w.state.Spec
	if hash := rollout.HashOf(spec.Content); hash != spec.Hash {
		return fmt.Sprintf("the order's content has the hash %s, and the order names %s", hash, spec.Hash), nil
	}
	if spec.Released {
		if err := w.open(ctx); err != nil {
			return "", err
		}
		own, err := w.ownRecord(ctx)
		switch {
		case err != nil:
			return "", err
		case own != nil && own.Begun == w.holder(): // an earlier attempt has confirmed it
			return "", nil
		case spec.Action == fleetv1.ActionRollBack && spec.RollbackGeneration == 0:
			return own.doubtReturn(), nil
		}
	}
	return w.doubtByRollout(ctx)
}

// doubtReturn returns why a node does not go back to its previous binaries by itself. The controller orders that for a
// node that does not become healthy, so only before its verdict.
func (r *record) doubtReturn() string {
	switch {
	case r == nil:
		return "the node has no record of what the order's content has replaced"
	case r.Judged:
		return "the rollout has ended on this node, so only its operation RollBack takes the content back"
	}
	return ""
}

// doubtByRollout compares the order with its NodeRollout, as the API server has that now.
func (w *order) doubtByRollout(ctx context.Context) (refusal string, err error) {
	spec := w.state.Spec
	var live fleetv1.NodeRollout
	err = w.get(ctx, fleetv1.RolloutResource(), spec.Rollout, &live)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("there is no NodeRollout %s", spec.Rollout), nil
	}
	if err != nil {
		return "", err
	}
	differs, err := content.Differences(live.Spec.Content, spec.Content)
	if err != nil {
		return "", err
	}
	operation, wanted := live.Spec.Operation, fleetv1.OperationRoll
	if operation == "" {
		operation = fleetv1.OperationRoll
	}
	if spec.Action == fleetv1.ActionRollBack {
		wanted = fleetv1.OperationRollBack
	}
	switch {
	case live.DeletionTimestamp != nil:
		return fmt.Sprintf("NodeRollout %s is being deleted", spec.Rollout), nil
	case len(differs) > 0:
		return fmt.Sprintf("the order's content is not that of NodeRollout %s: it differs in %s", spec.Rollout,
			few(differs)), nil
	case operation != wanted:
		return fmt.Sprintf("the order is to %s, and the operation of NodeRollout %s is %s", spec.Action, spec.Rollout,
			operation), nil
	case live.Spec.Paused && wanted == fleetv1.OperationRoll && !w.fetched: // a pause lets nodes that were touched go on
		return fmt.Sprintf("NodeRollout %s is paused", spec.Rollout), nil
	}
	if refusal, err := w.doubtBySelector(ctx, live.Spec.Selector); refusal != "" || err != nil {
		return refusal, err
	}
	return w.doubtByKubeProxy(ctx)
}

// doubtBySelector checks that the selector of the NodeRollout chooses this node. The controller cannot write labels of nodes.
func (w *order) doubtBySelector(ctx context.Context, text metav1.LabelSelector) (refusal string, err error) {
	selector, err := metav1.LabelSelectorAsSelector(&text)
	if err != nil {
		return fmt.Sprintf("the selector of NodeRollout %s is wrong: %v", w.state.Spec.Rollout, err), nil
	}
	if selector.Empty() {
		return "", nil
	}
	var own corev1.Node
	if err := w.get(ctx, corev1.SchemeGroupVersion.WithResource("nodes"), w.Node, &own); err != nil {
		return "", err
	}
	if !selector.Matches(labels.Set(own.Labels)) {
		return fmt.Sprintf("NodeRollout %s does not choose this node: its selector is %s", w.state.Spec.Rollout,
			selector), nil
	}
	return "", nil
}

// get reads an object from the API server.
func (w *order) get(ctx context.Context, resource schema.GroupVersionResource, name string, into any) error {
	return w.read(ctx, w.Client.Resource(resource), name, into)
}

// read reads an object of one kind.
func (w *order) read(ctx context.Context, from dynamic.ResourceInterface, name string, into any) error {
	u, err := from.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; `swdt fleet install` grants this right", err)
	}
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

// few returns the first fields for a message, and the number of the others.
func few(fields []string) string {
	const most = 5
	if len(fields) <= most {
		return strings.Join(fields, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(fields[:most], ", "), len(fields)-most)
}
