package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// DrainStep does one round of a drain, without waiting: it cordons the node, requests the eviction of
// each pod that must leave, and returns the pods that are left. The caller repeats it until there are
// none, and keeps the time: o.Timeout and o.Usable are not used. A budget that refuses an eviction is
// not an error. If the drain would lose pods, the error is a *DrainRefusedError, and nothing was changed.
func (c *Cluster) DrainStep(ctx context.Context, node string, o DrainOptions) ([]Pod, error) {
	if _, err := c.podsToEvict(ctx, node, o); err != nil {
		return nil, err
	}
	if _, err := c.cordon(ctx, node); err != nil {
		return nil, err
	}
	pods, err := c.podsToEvict(ctx, node, o)
	if err != nil {
		return nil, err
	}
	e := &eviction{cluster: c, node: node, options: o, leaving: map[types.UID]*leaving{}}
	var left []Pod
	for _, p := range pods {
		left = append(left, podOf(p))
		if p.DeletionTimestamp != nil {
			continue
		}
		if err := e.request(ctx, &leaving{pod: p}); err != nil && !apierrors.IsNotFound(err) {
			return left, err
		}
	}
	return left, nil
}
