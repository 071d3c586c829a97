package up

import (
	"context"

	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/day0/existing"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/ui"
)

// installNetwork returns the function of the stage that installs the pod network. The function waits
// until the network works on the nodes of the cluster. A new cluster has only Linux nodes at this
// time; each join later waits for the network on its own node.
func (w *work) installNetwork(control *stage) func(context.Context, ui.Reporter) (done, error) {
	return func(ctx context.Context, r ui.Reporter) (done, error) {
		if result, ok := w.afterwards(control); ok {
			return result, nil
		}
		found, err := w.controlPlane(ctx)
		if err == nil && w.existing() {
			err = existing.CheckSubnets(ctx, w.cluster, found.api)
		}
		if err != nil {
			return done{}, err
		}
		options, err := w.networkOptions()
		if err != nil {
			return done{}, err
		}
		report, err := podnetwork.Install(ctx, found.api, options, r)
		result := w.summary(report.Steps)
		result.changed = result.changed || report.Result == fleet.Changed
		if w.existing() {
			err = w.inDocument(err)
		}
		return result, err
	}
}

// networkOptions returns the options of the document's pod network. Subnets that the document leaves
// out are read from the cluster.
func (w *work) networkOptions() (podnetwork.Options, error) {
	wanted := w.cluster.Cluster.Spec.Network
	network, err := cni.NetworkNamed(wanted.Plugin)
	options := podnetwork.Options{
		Settings: cni.Settings{Network: network, PodCIDR: wanted.PodSubnet},
		Version:  wanted.Version, Mirror: w.Join.Mirror, DryRun: w.DryRun, Wait: w.NetworkLimit,
	}
	if wanted.ServiceSubnet != "" {
		options.Settings.ServiceCIDRs = []string{wanted.ServiceSubnet}
	}
	if wanted.Manifest == "" {
		options.SHA256 = wanted.SHA256
		return options, err
	}
	options.Manifests = []podnetwork.Manifest{{Source: w.cluster.Resolve(wanted.Manifest), SHA256: wanted.SHA256}}
	return options, err
}
