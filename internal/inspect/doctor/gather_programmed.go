package doctor

import (
	"context"
	"errors"
	"time"

	"github.com/swdt-dev/swdt/internal/inspect/kubeproxy"
	"github.com/swdt-dev/swdt/internal/inspect/programmed"
	"github.com/swdt-dev/swdt/internal/ui"
)

// programmed gathers the differences between the node's HNS and the cluster's Services. Without a kube-proxy that runs, they
// are unknown: other rules report a service that has stopped.
func (g *gatherer) programmed(ctx context.Context) error {
	if g.Cluster == nil || g.facts.Server.Value == nil || g.facts.Server.Value.Error != "" {
		g.facts.Programmed = factOf([]kubeproxy.Finding{}, errNoCluster)
		return nil
	}
	source := g.Services
	if source == nil {
		source = programmed.NewSource(g.Cluster.Clientset())
	}
	const wait = 15 * time.Second
	node, err := programmed.Look(ctx, g.Node, programmed.Options{Source: source, Join: g.Join, Settle: programmed.DefaultSettle,
		Wait: wait, MetricsURL: kubeproxy.DefaultMetricsURL}, ui.Discard{})
	if err == nil && !node.Proxy.Runs {
		err = errors.New("no process kube-proxy.exe runs on the node")
	}
	g.facts.Programmed = factOf(node.Findings, err)
	return err
}
