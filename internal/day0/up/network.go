package up

import (
	"context"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/config"
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
		if err != nil {
			return done{}, err
		}
		options, err := NetworkOptions(w.cluster)
		if err != nil {
			return done{}, err
		}
		options.Mirror, options.DryRun, options.Wait = w.Join.Mirror, w.DryRun, w.NetworkLimit
		report, err := InstallNetwork(ctx, w.cluster, found.api, options, r)
		result := w.summary(report.Steps)
		result.changed = result.changed || report.Result == fleet.Changed
		if w.existing() {
			err = w.withoutFlag(err)
		}
		return result, manifestInDocument(w.cluster, err)
	}
}

// NetworkOptions returns the options with which the pod network of a document is installed. The caller
// may change them. Fields that the document leaves out are decided by the cluster.
func NetworkOptions(doc config.ClusterDocument) (podnetwork.Options, error) {
	wanted := doc.Cluster.Spec.Network
	network, err := cni.NetworkNamed(wanted.Plugin)
	options := podnetwork.Options{
		Settings: cni.Settings{Network: network, PodCIDR: wanted.PodSubnet,
			KubeProxy: cluster.KubeProxyForm(wanted.KubeProxy)}, Version: wanted.Version,
	}
	if wanted.ServiceSubnet != "" {
		options.Settings.ServiceCIDRs = []string{wanted.ServiceSubnet}
	}
	if wanted.Manifest == "" {
		options.SHA256, options.CRDSHA256, options.WindowsSHA256 = wanted.SHA256, wanted.CRDSHA256, wanted.WindowsSHA256
		return options, err
	}
	options.Manifests = []podnetwork.Manifest{{Source: doc.Resolve(wanted.Manifest), SHA256: wanted.SHA256}}
	if wanted.CRDManifest != "" {
		options.Manifests = append(options.Manifests,
			podnetwork.Manifest{Source: doc.Resolve(wanted.CRDManifest), SHA256: wanted.CRDSHA256})
	}
	if wanted.WindowsManifest != "" {
		options.Manifests = append(options.Manifests,
			podnetwork.Manifest{Source: doc.Resolve(wanted.WindowsManifest), SHA256: wanted.WindowsSHA256})
	}
	return options, err
}

// InstallNetwork installs the pod network into the cluster of a document, with the options that
// NetworkOptions returns. If the cluster was made by another tool, and a field of the document does not
// fit it, the error is a *config.Error that names the field.
func InstallNetwork(ctx context.Context, doc config.ClusterDocument, api *cluster.Cluster, o podnetwork.Options,
	r ui.Reporter) (podnetwork.Report, error) {
	if doc.Cluster.Spec.ControlPlane.Existing == nil {
		return podnetwork.Install(ctx, api, o, r)
	}
	if err := existing.CheckSubnets(ctx, doc, api); err != nil {
		return podnetwork.Refused(api, o.Settings.Network, err)
	}
	report, err := podnetwork.Install(ctx, api, o, r)
	return report, inDocument(doc, o, err)
}
