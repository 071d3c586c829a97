package preflight

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// gatherCluster reads the version of the API server first. If the API server answers, gatherCluster
// makes its other requests concurrently. If a request fails, its fact is unknown. gatherCluster
// returns an error only if ctx has ended.
func gatherCluster(ctx context.Context, in Input) (*clusterFacts, error) {
	c := in.Cluster
	f := &clusterFacts{server: c.Server()}
	if f.version = factOf(c.Version(ctx)); f.version.err != nil {
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
		f.clock = factOf(Clock{skew.Offset, skew.Uncertainty}, err)
	})
	look(func() { f.missing = factOf(c.Missing(ctx, cluster.JoinNeeds())) })
	look(func() { f.info = factOf(c.ClusterInfo(ctx)) })
	look(func() { f.kubeletConfig = factOf(c.KubeletConfig(ctx)) })
	look(func() { f.cni = factOf(c.CNI(ctx)) })
	return f, group.Wait()
}

// gatherNamesake looks for a Node that already has the name of the new Node. That name may
// come from the machine itself.
func gatherNamesake(ctx context.Context, in Input, f *facts) error {
	name := f.nodeName()
	switch {
	case f.cluster.version.err != nil:
		f.cluster.namesake.err = errReportedElsewhere
	case name == "":
		f.cluster.namesake.err = errNoName
	default:
		f.cluster.namesake = factOf(in.Cluster.Node(ctx, name))
	}
	return ctx.Err()
}
