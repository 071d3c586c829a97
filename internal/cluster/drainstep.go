package cluster

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// DrainRound is one round of the drains of several nodes. It looks each DaemonSet up once.
type DrainRound struct {
	cluster *Cluster
	sets    daemonSets
}

// NewDrainRound returns a round, which must be short: what it has looked up may change.
func (c *Cluster) NewDrainRound() *DrainRound { return &DrainRound{cluster: c, sets: daemonSets{}} }

// Step drains a node without waiting: it cordons the node, requests the eviction of
// each pod that must leave, and returns the pods that are left, with the reasons. The caller repeats it until
// there are none, and keeps the time: o.Timeout and o.Usable are not used. A budget that refuses an eviction
// is not an error. If the drain would lose pods, the error is a *DrainRefusedError, and nothing was changed.
func (r *DrainRound) Step(ctx context.Context, node string, o DrainOptions) (BlockedPods, error) {
	c := r.cluster
	pods, err := c.podsToEvict(ctx, node, o, r.sets)
	if err != nil {
		return nil, err
	}
	switch cordoned, _, err := c.cordon(ctx, node); {
	case err != nil:
		return nil, err
	case cordoned: // pods may have been scheduled just before
		if pods, err = c.podsToEvict(ctx, node, o, r.sets); err != nil {
			return nil, err
		}
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
