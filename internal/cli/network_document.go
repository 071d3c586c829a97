package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/day0/up"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/ui"
)

// networkFiles are the files of --config for a command on a pod network.
type networkFiles struct {
	// cluster is the document of the cluster; nil: the kubeconfig alone names the cluster.
	cluster *config.ClusterDocument
	nodes   []config.Document
}

// networkFiles reads the files of --config, if the flag is set. They must have a document of kind
// Cluster, unless a flag of o names the cluster or onNodes is set: the files may then have only nodes.
func (a *app) networkFiles(o *clusterOptions, onNodes bool) (files networkFiles, err error) {
	if err := a.global.validate(); err != nil || len(a.global.config) == 0 {
		return files, err
	}
	load := func() (*config.ClusterDocument, []config.Document, error) {
		doc, nodes, err := config.LoadAll(a.global.config, a.streams.In)
		return &doc, nodes, err
	}
	if onNodes || o.named() {
		load = func() (*config.ClusterDocument, []config.Document, error) {
			return config.LoadAny(a.global.config, a.streams.In)
		}
	}
	if files.cluster, files.nodes, err = load(); err != nil {
		return networkFiles{}, err
	}
	if onNodes && len(files.nodes) == 0 {
		return networkFiles{}, usagef("--%s needs the nodes' files, but %s has no node: name them with -c, too", onNodesFlag,
			strings.Join(a.global.config, ", "))
	}
	a.readCluster = files.cluster != nil
	return files, nil
}

// session returns a session with the chosen nodes of the files or, without --config, of the default files.
func (f networkFiles) session(a *app) (*session, error) {
	if len(a.global.config) == 0 {
		return a.begin()
	}
	a.loaded = len(f.nodes)
	chosen, err := config.Select(f.nodes, a.global.nodes, a.global.selector)
	if err != nil {
		return nil, err
	}
	return a.sessionFor(chosen)
}

// open returns the cluster that the flags --kubeconfig and --context select. Without these flags, it
// returns the cluster of the document, as `swdt up` finds it.
func (f networkFiles) open(ctx context.Context, a *app, o *clusterOptions) (*cluster.Cluster, error) {
	if f.cluster == nil || o.named() {
		return o.open()
	}
	return a.openDocument(ctx, *f.cluster)
}

// checkMade returns an error if a cluster of kind was made from another document, since the cluster
// may then have other addresses than this document. `swdt up` makes the same check.
func (f networkFiles) checkMade(ctx context.Context, a *app, o *clusterOptions) error {
	if f.cluster == nil || o.named() || f.cluster.Cluster.Spec.ControlPlane.Kind == nil {
		return nil
	}
	return a.withCluster(ctx, *f.cluster, func(_ context.Context, all *kindcluster.Clusters, doc config.ClusterDocument,
		_ ui.Reporter) error {
		return all.CheckSettings(doc)
	})
}

// network returns the pod network that the argument names. If there is no argument, it returns the
// pod network that the document names.
func (f networkFiles) network(args []string) (cni.Network, error) {
	if len(args) > 0 || f.cluster == nil {
		network, err := cni.NetworkNamed(firstOr(args, ""))
		if err != nil {
			return "", usagef("%v", err)
		}
		return network, nil
	}
	plugin := f.cluster.Cluster.Spec.Network.Plugin
	if plugin == v1alpha1.NoPlugin {
		return "", &config.Error{Problems: []config.Problem{f.cluster.Problem("spec.network.plugin",
			"is none, so the document names no pod network", "write calico, flannel or antrea there, or after the command")}}
	}
	return cni.NetworkNamed(plugin)
}

// expected returns the settings that the pod network should have, and the name of the pod network in
// the document. Both are empty if there is no document.
func (f networkFiles) expected() (options podnetwork.Options, network string, err error) {
	if f.cluster == nil {
		return options, "", nil
	}
	doc := *f.cluster
	network = doc.Cluster.Spec.Network.Plugin
	if network == v1alpha1.NoPlugin { // any network that the cluster has is expected
		doc.Cluster.Spec.Network.Plugin = ""
	}
	options, err = up.NetworkOptions(doc)
	return options, network, err
}

// withDocument completes the options of the flags with those of the document. It also returns the
// document without the fields that a flag or the argument replaces.
func (o *networkInstallOptions) withDocument(doc config.ClusterDocument, flags podnetwork.Options, named bool) (
	podnetwork.Options, config.ClusterDocument, error) {
	network := &doc.Cluster.Spec.Network
	if named && network.Plugin != string(flags.Settings.Network) { // the document's manifest belongs to another network
		*network = v1alpha1.ClusterNetwork{PodSubnet: network.PodSubnet, ServiceSubnet: network.ServiceSubnet}
	}
	if o.version != "" || len(o.manifests) > 0 {
		network.Version, network.Manifest, network.SHA256 = "", "", ""
		network.CRDManifest, network.CRDSHA256 = "", ""
		network.WindowsManifest, network.WindowsSHA256 = "", ""
	}
	if o.podCIDR != "" {
		network.PodSubnet = ""
	}
	if len(o.serviceCIDRs) > 0 {
		network.ServiceSubnet = ""
	}
	documented, err := up.NetworkOptions(doc)
	settings, wanted := &flags.Settings, documented.Settings
	if !named {
		settings.Network = wanted.Network
		if len(flags.Manifests) == 0 {
			o.placeHashes(&flags)
		}
	}
	settings.PodCIDR = cmp.Or(settings.PodCIDR, wanted.PodCIDR)
	if !o.noProxy {
		settings.KubeProxy = cmp.Or(settings.KubeProxy, wanted.KubeProxy)
	}
	if len(settings.ServiceCIDRs) == 0 {
		settings.ServiceCIDRs = wanted.ServiceCIDRs
	}
	flags.Version = cmp.Or(flags.Version, documented.Version)
	if len(flags.Manifests) == 0 && len(documented.Manifests) > 0 {
		flags.Manifests = slices.Clone(documented.Manifests)
		for i, hash := range o.hashes {
			if i < len(flags.Manifests) {
				flags.Manifests[i].SHA256 = hash
			}
		}
		flags.SHA256, flags.CRDSHA256, flags.WindowsSHA256 = "", "", ""
	}
	flags.SHA256 = cmp.Or(flags.SHA256, documented.SHA256)
	flags.CRDSHA256 = cmp.Or(flags.CRDSHA256, documented.CRDSHA256)
	flags.WindowsSHA256 = cmp.Or(flags.WindowsSHA256, documented.WindowsSHA256)
	return flags, doc, err
}

// removalQuestion returns the question in the error that swdt reports if there is no terminal to ask on.
// swdt reports this error before it reads any file, so the question does not contain a network that only
// a document names.
func (a *app) removalQuestion(args []string) string {
	if len(args) == 0 && len(a.global.config) > 0 {
		return "Remove the pod network of the cluster?"
	}
	return fmt.Sprintf("Remove the pod network %s?", firstOr(args, string(cni.Calico)))
}
