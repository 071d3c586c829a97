package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/cluster"
	"github.com/swdt-dev/swdt/internal/cluster/cni"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/day0/up"
	"github.com/swdt-dev/swdt/internal/join/podnetwork"
	"github.com/swdt-dev/swdt/internal/ui"
)

// defaultNetworkWait is how long one condition of a pod network may take. It is long, since a Windows
// node may first have to pull images of several gigabytes.
const defaultNetworkWait = 10 * time.Minute

func (a *app) networkCommand() *cobra.Command {
	cmd := group("network", "Install the pod network of Windows nodes, and check what they program",
		a.networkInstallCommand(), a.networkStatusCommand(), a.networkServicesCommand(), a.networkRemoveCommand())
	cmd.Long = `Installs Calico (by its operator), flannel or Antrea with all settings that Windows
nodes need, and kube-proxy for Windows. It works on the cluster of a kubeconfig or,
with -c, on that of a document of kind Cluster, and contacts no node, unless
--on-nodes is set. "network services" works on nodes: it compares what they have
programmed for Services with the cluster.`
	cmd.Example = examples(
		"network install --dry-run", "what would change",
		"network install", "Calico, with the cluster's own addresses",
		"network install -c cluster.yaml", "the network of the document",
		"network status", "does it work on the Windows nodes?",
		"network services", "have the nodes programmed all Services?",
	)
	return cmd
}

type networkInstallOptions struct {
	cluster      clusterOptions
	version      string
	manifests    []string
	hashes       []string
	mirror       string
	podCIDR      string
	serviceCIDRs []string
	apiServer    string
	proxyImage   string
	noProxy      bool
	proxyForm    string
	noFlannel    bool
	noWait       bool
	force        bool
	wait         time.Duration
	onNodes      bool
}

func (a *app) networkInstallCommand() *cobra.Command {
	o := &networkInstallOptions{}
	cmd := forDocument(canDryRun(&cobra.Command{
		Use: "install [calico|flannel|antrea] [flags]", Short: "Install the pod network, or what it lacks for Windows",
		SuggestFor: []string{"up", "apply", "create", "setup"},
		Long: `Installs the pod network of a cluster. The default is Calico: its operator, HNS as
the data plane of Windows, VXLAN without BGP, the Services' addresses, the API
server's address for Windows (ConfigMap kubernetes-services-endpoint),
strictAffinity, and kube-proxy's DaemonSet for Windows, whose command is swdt's own.
--kube-proxy service makes kube-proxy a Windows service instead, which "swdt join"
and "swdt up" set up on each node, with a kube-proxy.exe of the node's version; the
choice is recorded in the cluster. Another choice removes what the former one has in
the cluster; nodes that joined before follow with their next "swdt join".
flannel gets the VXLAN numbers of Windows (VNI 4096, port 4789) and kube-proxy; no
image of flannel for Windows is published, so swdt refuses it unless the cluster
has one, or --no-windows-flannel says that you run it there. Antrea gets its
DaemonSet for Windows, which replaces kube-proxy there, with the API server's
address and the tunnels of Linux.

The addresses come from the cluster. The manifests are the published ones, whose
hashes swdt knows, of the newest version that is tested with the cluster's
Kubernetes; name another one with --release or --manifest, and its hash with
--sha256. --mirror replaces the internet. swdt knows no hash of Antrea: verify its
two manifests, antrea.yml and antrea-windows-with-ovs.yml, and pass both hashes, or
name both files.

With -c, the document of kind Cluster names the cluster, and its spec.network the
network, version, manifest, hash and addresses, as for "swdt up"; the argument and
the flags replace its fields.

swdt adds what is missing, by server-side apply as the field manager "swdt". It
keeps objects and settings that already work. A setting that does not work and
that another manager owns is a conflict: it is shown, and nothing is changed,
unless --force takes it. --dry-run shows each change.

At the end it waits until the network works on Linux and on the Windows nodes that
the cluster has, and reports the reason if it does not.`,
		Example: examples(
			"network install --dry-run", "the changes, field by field",
			"network install --kubeconfig admin.conf", "",
			"network install -c cluster.yaml", "the cluster and network of the document",
			"network install --mirror ./mirror", "without the internet",
			"network install flannel --pod-cidr 10.244.0.0/16", "",
			"network install --manifest tigera-operator.yaml", "a file of your own",
		),
		Args:      arguments(cobra.MaximumNArgs(1)),
		ValidArgs: networkNames(),
		RunE:      func(cmd *cobra.Command, args []string) error { return a.runNetworkInstall(cmd.Context(), o, args) },
	}))
	o.cluster.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.version, "release", "", "`version` of the network (default the one whose hash swdt knows)")
	flags.StringArrayVar(&o.manifests, "manifest", nil,
		"`file` or URL of a manifest to apply instead of the network's own; repeat the flag for each manifest")
	flags.StringArrayVar(&o.hashes, "sha256", nil, "`hash` of the manifest; once for each manifest, in their order")
	flags.StringVar(&o.mirror, "mirror", "", "`URL or folder` that everything is downloaded from instead")
	flags.StringVar(&o.podCIDR, "pod-cidr", "", "`addresses` of pods (default those of the cluster)")
	flags.StringSliceVar(&o.serviceCIDRs, "service-cidr", nil, "`addresses` of Services (default those of the cluster)")
	flags.StringVar(&o.apiServer, "api-server", "",
		"`host:port` at which all nodes reach the API server (default the one in cluster-info)")
	flags.StringVar(&o.proxyImage, "kube-proxy-image", "",
		"`image` of kube-proxy for Windows (default the one of the cluster's version)")
	flags.BoolVar(&o.noProxy, "no-kube-proxy", false, "leave out kube-proxy for Windows")
	flags.StringVar(&o.proxyForm, kubeProxyFlag, "",
		"`form` of kube-proxy for Windows: service, daemonset or none (default the recorded one, or daemonset)")
	flags.BoolVar(&o.noFlannel, "no-windows-flannel", false,
		"install flannel although no image of it for Windows is published: you run it there")
	flags.BoolVar(&o.noWait, "no-wait", false, "do not wait until the network works")
	flags.BoolVar(&o.force, "force", false, "take fields even if other managers own them")
	flags.DurationVar(&o.wait, waitTimeout, defaultNetworkWait, "how long each condition may take")
	addOnNodesFlag(cmd, &o.onNodes)
	must(cmd.MarkFlagFilename("manifest"))
	must(cmd.MarkFlagDirname("mirror"))
	must(cmd.RegisterFlagCompletionFunc(kubeProxyFlag, cobra.FixedCompletions(cluster.KubeProxyForms(),
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func networkNames() (names []string) {
	for _, n := range cni.Networks() {
		names = append(names, string(n))
	}
	return names
}

func (a *app) runNetworkInstall(ctx context.Context, o *networkInstallOptions, args []string) error {
	options, err := o.complete(args)
	if err != nil {
		return err
	}
	files, err := a.networkFiles(&o.cluster, o.onNodes)
	if err != nil {
		return err
	}
	install := podnetwork.Install
	if files.cluster != nil {
		if _, err := files.network(args); err != nil {
			return err
		}
		var doc config.ClusterDocument
		if options, doc, err = o.withDocument(*files.cluster, options, len(args) > 0); err != nil {
			return err
		}
		install = func(ctx context.Context, c *cluster.Cluster, o podnetwork.Options, r ui.Reporter) (podnetwork.Report,
			error) {
			return up.InstallNetwork(ctx, doc, c, o, r)
		}
	}
	if hasMoreHashes(options) {
		return errMoreHashes
	}
	if err := checkKubeProxyOf(options.Settings); err != nil {
		return err
	}
	if err := files.checkMade(ctx, a, &o.cluster); err != nil {
		return err
	}
	c, err := files.open(ctx, a, &o.cluster)
	if err != nil {
		return err
	}
	options.DryRun = a.global.dryRun
	return a.changeNetwork(ctx, func(ctx context.Context, r ui.Reporter) (podnetwork.Report, error) {
		report, err := install(ctx, c, options, r)
		if err != nil || !o.onNodes || a.global.dryRun {
			return report, err
		}
		nodes, err := a.networkOnNodes(ctx, files, report.Network, o.wait)
		return report.WithNodes(nodes, err)
	})
}

// complete checks the flags without contacting anything.
func (o *networkInstallOptions) complete(args []string) (podnetwork.Options, error) {
	network, err := cni.NetworkNamed(firstOr(args, ""))
	if err != nil {
		return podnetwork.Options{}, usagef("%v", err)
	}
	options := podnetwork.Options{
		Settings: cni.Settings{Network: network, PodCIDR: o.podCIDR, ServiceCIDRs: o.serviceCIDRs, APIServer: o.apiServer,
			KubeProxyImage: o.proxyImage, KubeProxy: cluster.KubeProxyForm(o.proxyForm)},
		Version: o.version, Mirror: o.mirror, Force: o.force, NoKubeProxy: o.noProxy, NoWindowsFlannel: o.noFlannel, NoWait: o.noWait, Wait: o.wait,
	}
	switch {
	case o.wait <= 0:
		return options, usagef("--%s %s: use a positive time, such as 10m", waitTimeout, o.wait)
	case o.version != "" && len(o.manifests) > 0:
		return options, usagef("--release and --manifest exclude each other: the manifest has the version")
	case len(o.manifests) == 0 && len(o.hashes) > 2, len(o.manifests) > 0 && len(o.hashes) > len(o.manifests):
		return options, errMoreHashes
	}
	for _, hash := range o.hashes {
		if !podnetwork.IsSHA256(hash) {
			return options, usagef("--sha256 %q: write 64 hexadecimal digits, as sha256sum prints them", hash)
		}
	}
	if err := errors.Join(o.checkKubeProxy(), o.checkAddresses()); err != nil {
		return options, err
	}
	if o.apiServer != "" {
		if _, _, err := net.SplitHostPort(o.apiServer); err != nil {
			return options, usagef("--api-server %q: write host:port, such as 192.168.122.1:6443", o.apiServer)
		}
	}
	if len(o.manifests) == 0 {
		o.placeHashes(&options)
	}
	for i, source := range o.manifests {
		m := podnetwork.Manifest{Source: source}
		if i < len(o.hashes) {
			m.SHA256 = o.hashes[i]
		}
		options.Manifests = append(options.Manifests, m)
	}
	return options, nil
}

// kubeProxyFlag is the flag that chooses the form of kube-proxy.
const kubeProxyFlag = "kube-proxy"

// checkKubeProxy checks the form of kube-proxy and the flags that exclude it.
func (o *networkInstallOptions) checkKubeProxy() error {
	switch {
	case o.proxyForm == "":
		return nil
	case !slices.Contains(cluster.KubeProxyForms(), o.proxyForm):
		return usagef("--%s %q: use %s", kubeProxyFlag, o.proxyForm, ui.Alternatives(cluster.KubeProxyForms()))
	case o.noProxy:
		return usagef("--%s and --no-kube-proxy exclude each other", kubeProxyFlag)
	case o.proxyImage != "" && o.proxyForm != string(cluster.KubeProxyDaemonSet):
		return usagef("--kube-proxy-image is for --%s daemonset: a service runs the kube-proxy.exe of the node's version",
			kubeProxyFlag)
	}
	return nil
}

// checkKubeProxyOf checks that the pod network leaves kube-proxy to swdt.
func checkKubeProxyOf(s cni.Settings) error {
	if s.Network == cni.Antrea && s.KubeProxy != "" {
		return usagef("--%s %s: Antrea replaces kube-proxy on Windows nodes: leave the flag out", kubeProxyFlag, s.KubeProxy)
	}
	return nil
}

// placeHashes sets the hashes of a version's manifests, whose second one is that of the network.
func (o *networkInstallOptions) placeHashes(options *podnetwork.Options) {
	second := firstOr(o.hashes[min(1, len(o.hashes)):], "")
	options.SHA256, options.CRDSHA256, options.WindowsSHA256 = firstOr(o.hashes, ""), second, ""
	if options.Settings.Network == cni.Antrea {
		options.CRDSHA256, options.WindowsSHA256 = "", second
	}
}

// hasMoreHashes reports whether there is a hash for a second manifest that the version does not have.
func hasMoreHashes(o podnetwork.Options) bool {
	release := cni.ReleaseOf(o.Settings.Network, o.Version, "")
	return o.CRDSHA256 != "" && release.CRDsURL == "" || o.WindowsSHA256 != "" && release.WindowsURL == ""
}

// checkAddresses checks the prefixes of the flags.
func (o *networkInstallOptions) checkAddresses() error {
	if _, err := netip.ParsePrefix(o.podCIDR); o.podCIDR != "" && err != nil {
		return usagef("--pod-cidr %q: write a prefix, such as 10.244.0.0/16", o.podCIDR)
	}
	for _, text := range o.serviceCIDRs {
		if _, err := netip.ParsePrefix(text); err != nil {
			return usagef("--service-cidr %q: write a prefix, such as 10.96.0.0/12", text)
		}
	}
	return nil
}

// errMoreHashes is returned for hashes of manifests that the network does not have.
var errMoreHashes = usagef("--sha256: there are more hashes than manifests")

func firstOr(args []string, otherwise string) string {
	return slices.Concat(args, []string{otherwise})[0]
}

// changeNetwork runs an installation or a removal, and prints its report.
func (a *app) changeNetwork(ctx context.Context,
	change func(context.Context, ui.Reporter) (podnetwork.Report, error)) error {
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	story := a.newStory()
	r := story.Node("")
	report, failure := change(ctx, r)
	ui.Done(r)
	story.End()
	err := a.print(report, func(p *ui.Page) error { return report.WriteText(p, a.global.dryRun) })
	return errors.Join(err, a.remedied("", explain(ctx, failure)))
}

func (a *app) networkStatusCommand() *cobra.Command {
	o, onNodes := &clusterOptions{}, false
	cmd := forDocument(&cobra.Command{
		Use: "status [flags]", Short: "Check the pod network's settings and whether it works",
		SuggestFor: []string{"check", "show", "get"},
		Long: `Compares the pod network of a cluster with what Windows nodes need, and checks
whether its programs run, on Linux and on each Windows node. With -c, it compares
the network with the document of kind Cluster, too. It changes nothing. The exit code
is 5 if something is missing or does not work, or if the network is not that of the
document.`,
		Example: examples("network status", "", "network status -c cluster.yaml", "the cluster of the document",
			"network status --on-nodes -c nodes/", "the nodes' HNS, too"),
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runNetworkStatus(cmd.Context(), o, onNodes) },
	})
	o.addFlags(cmd)
	addOnNodesFlag(cmd, &onNodes)
	return cmd
}

func (a *app) runNetworkStatus(ctx context.Context, o *clusterOptions, onNodes bool) error {
	files, err := a.networkFiles(o, onNodes)
	if err != nil {
		return err
	}
	options, wanted, err := files.expected()
	if err != nil {
		return err
	}
	c, err := files.open(ctx, a, o)
	if err != nil {
		return err
	}
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	status, err := podnetwork.Look(ctx, c, options, ui.Discard{})
	if err != nil {
		return a.remedied("", explain(ctx, err))
	}
	status.Wanted = wanted
	if onNodes && status.Network != "" {
		if status.Nodes, err = a.networkOnNodes(ctx, files, status.Network, 0); err != nil && status.Nodes == nil {
			return err
		}
	}
	if err := a.print(status, func(p *ui.Page) error { return status.WriteText(p) }); err != nil {
		return err
	}
	if status.Failed() {
		return &exitError{code: exitFinding}
	}
	return nil
}

type networkRemoveOptions struct {
	cluster clusterOptions
	crds    bool
	yes     bool
	wait    time.Duration
}

func (a *app) networkRemoveCommand() *cobra.Command {
	o := &networkRemoveOptions{}
	cmd := forDocument(canDryRun(&cobra.Command{
		Use: "remove [calico|flannel|antrea] [flags]", Short: "Remove what network install has made",
		SuggestFor: []string{"uninstall", "delete", "down", "undo"},
		Long: `Removes the objects that swdt network install has created. All other objects
stay; in a Calico that others have installed, it turns only Windows off. A kind
(CustomResourceDefinition) stays as long as objects of this kind exist, since
they would be removed with the kind: --crds removes both. The nodes keep the
configuration that the network has written on them. With -c, the document of kind
Cluster names the cluster and the network.

Pods have no network afterwards. It asks first, unless --yes or --dry-run is set.`,
		Example: examples("network remove --dry-run", "", "network remove --yes", "",
			"network remove -c cluster.yaml", "from the cluster of the document"),
		Args: arguments(cobra.MaximumNArgs(1)), ValidArgs: networkNames(),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runNetworkRemove(cmd.Context(), o, args) },
	}))
	o.cluster.addFlags(cmd)
	cmd.Flags().BoolVar(&o.crds, "crds", false, "remove the network's kinds too, with all objects of these kinds")
	cmd.Flags().DurationVar(&o.wait, waitTimeout, defaultNetworkWait, "how long the removal of each object may take")
	addYesFlag(cmd, &o.yes)
	return cmd
}

func (a *app) runNetworkRemove(ctx context.Context, o *networkRemoveOptions, args []string) error {
	if _, err := cni.NetworkNamed(firstOr(args, "")); err != nil {
		return usagef("%v", err)
	}
	prompt, answered := a.prompter(a.newStory()), o.yes || a.global.dryRun
	if err := canConfirm(prompt, answered, a.removalQuestion(args)); err != nil {
		return err
	}
	if o.wait <= 0 {
		return usagef("--%s %s: use a positive time, such as 10m", waitTimeout, o.wait)
	}
	files, err := a.networkFiles(&o.cluster, false)
	if err != nil {
		return err
	}
	network, err := files.network(args)
	if err != nil {
		return err
	}
	c, err := files.open(ctx, a, &o.cluster)
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Remove the pod network %s of %s?", network, c.Server())
	if err := confirm(ctx, prompt, answered, question); err != nil {
		return err
	}
	options := podnetwork.RemoveOptions{Network: network, CRDs: o.crds, DryRun: a.global.dryRun, Wait: o.wait}
	return a.changeNetwork(ctx, func(ctx context.Context, r ui.Reporter) (podnetwork.Report, error) {
		return podnetwork.Remove(ctx, c, options, r)
	})
}
