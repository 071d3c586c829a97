package cluster

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// DrainStep does one round of a drain, without waiting: it cordons the node, requests the eviction of
// each pod that must leave, and returns the pods that are left, with the reasons. The caller repeats it until
// there are none, and keeps the time: o.Timeout and o.Usable are not used. A budget that refuses an eviction
// is not an error. If the drain would lose pods, the error is a *DrainRefusedError, and nothing was changed.
func (c *Cluster) DrainStep(ctx context.Context, node string, o DrainOptions) (BlockedPods, error) {
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
	var left BlockedPods
	for _, p := range pods {
		l := &leaving{pod: p}
		if p.DeletionTimestamp == nil {
			if err := e.request(ctx, l); err != nil && !apierrors.IsNotFound(err) {
				return left, err
			}
		}
		left = append(left, BlockedPod{Pod: podOf(p), Message: cmp.Or(l.refused, stillRuns)})
	}
	return left, nil
}
