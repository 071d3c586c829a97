package preflight

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// gatherCluster makes all requests to the cluster concurrently. A failed request is an
// unknown fact; the error is ctx's.
func gatherCluster(ctx context.Context, in Input) (*clusterFacts, error) {
	c := in.Cluster
	f := &clusterFacts{server: c.Server()}
	if f.version = learn(c.Version(ctx)); f.version.err != nil {
		return f, ctx.Err() // all other requests would fail in the same way
	}
	var group errgroup.Group
	look := func(at func()) {
		group.Go(func() error {
			at()
			return ctx.Err()
		})
	}
	look(func() {
		skew, err := c.ClockSkew(ctx)
		f.clock = learn(Clock{skew.Offset, skew.Uncertainty}, err)
	})
	look(func() { f.missing = learn(c.Missing(ctx, cluster.JoinNeeds())) })
	look(func() { f.info = learn(c.ClusterInfo(ctx)) })
	look(func() { f.kubeletConfig = learn(c.KubeletConfig(ctx)) })
	look(func() { f.cni = learn(c.CNI(ctx)) })
	return f, group.Wait()
}

// gatherNamesake looks for a Node of the name, which the machine itself may have determined.
func gatherNamesake(ctx context.Context, in Input, f *facts) error {
	name := f.nodeName()
	switch {
	case f.cluster.version.err != nil:
		f.cluster.namesake.err = errSaid
	case name == "":
		f.cluster.namesake.err = errNoName
	default:
		f.cluster.namesake = learn(in.Cluster.Node(ctx, name))
	}
	return ctx.Err()
}
