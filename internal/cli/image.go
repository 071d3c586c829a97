package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/cluster/upgradelive"
	"github.com/swdt-dev/swdt/internal/format/imagefit"
	"github.com/swdt-dev/swdt/internal/inspect/imagecheck"
	"github.com/swdt-dev/swdt/internal/obtain/login"
	"github.com/swdt-dev/swdt/internal/ui/finding"
)

func (a *app) imageCommand() *cobra.Command {
	cmd := group("image", "Find which container images Windows nodes take and run, and pull them", a.imageCheckCommand(), a.imageListCommand(), a.imagePullCommand(), a.oldBakeCommand())
	cmd.Long = `Looks at container images in their registries, and makes nodes pull them. Disk
images from which nodes are made are those of "swdt vm image".`
	cmd.Example = examples("image check hello-world:nanoserver", "", "image list hello-world", "")
	return cmd
}

// imageCheckOptions are the flags of image check.
type imageCheckOptions struct {
	cluster    clusterOptions
	files      []string
	manifests  []string
	windows    []string
	containerd string
	mirrors    []string
	failOn     string

	images   []string
	nodes    []imagecheck.Node // those of the flags
	asked    bool              // the cluster was asked
	registry *imagecheck.Registry
}

// newestContainerd is the version of containerd of nodes that nothing names. Its choice is that of all since 2.3.5.
const newestContainerd = "2.4"

func (a *app) imageCheckCommand() *cobra.Command {
	o := &imageCheckOptions{}
	cmd := &cobra.Command{
		Use:        "check [IMAGE…] [flags]",
		Short:      "Find which manifest of an image each node takes, and whether Windows runs it",
		SuggestFor: []string{"inspect", "verify", "fit"},
		Long: `Reads the index of each image from its registry, and computes for each Windows
node which manifest its containerd takes, as each version of containerd does,
whether its Windows runs that, how many bytes a pull fetches, and until when the
base image has support. It fetches no layers, and changes nothing.

The nodes are those of the cluster of --kubeconfig or $KUBECONFIG, or the
releases of --windows with the version of --containerd. Without both, they are
the supported releases of Windows Server with the newest containerd. The images
are the named ones, those of the manifests of -f, or those of the cluster's
workloads.

Logins are those of docker login. Layers count once, and not at all if the node
has the image. The exit code is 5 if a finding is as severe as --fail-on or
worse: a node that takes nothing, or a Windows that refuses what is taken.`,
		Example: examples(
			"image check hello-world:nanoserver", "",
			"image check IMAGE --windows ltsc2025 --containerd 1.7.12", "planned",
			"image check --kubeconfig admin.conf", "a cluster",
			"image check -f ./manifests --windows ltsc2022", "in CI",
			"image check IMAGE --registry-mirror _default=URL", "",
		),
		Args: arguments(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.images = args
			return a.runImageCheck(cmd.Context(), o)
		},
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.files, "filename", "f", nil, "`file or folder` to read, several times for several; - for stdin")
	flags.StringSliceVar(&o.manifests, "manifests", nil, "`file or folder` to read, as with --filename")
	flags.StringVar(&o.failOn, "fail-on", string(finding.Error),
		"end with 5 for a finding this severe: error, warning, info or never")
	must(errors.Join(cmd.MarkFlagFilename("filename"), cmd.MarkFlagFilename("manifests"),
		cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(failOns(), cobra.ShellCompDirectiveNoFileComp))))
	return cmd
}

// addFlags adds the flags that choose nodes and registries.
func (o *imageCheckOptions) addFlags(cmd *cobra.Command) {
	o.cluster.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&o.windows, "windows", nil, "`release` of Windows Server, such as ltsc2025, or a build, such as 10.0.26100.2894")
	flags.StringVar(&o.containerd, "containerd", "", "`version` of containerd of the nodes of --windows (default "+newestContainerd+")")
	flags.StringSliceVar(&o.mirrors, "registry-mirror", nil, "`HOST=URL` of a mirror that is read instead of a registry; _default=URL for all others")
	must(cmd.RegisterFlagCompletionFunc("windows", cobra.FixedCompletions(upgradecheck.WindowsReleases(), cobra.ShellCompDirectiveNoFileComp)))
}

// complete checks the flags without contacting anything.
func (o *imageCheckOptions) complete(a *app) error {
	if err := a.global.validate(); err != nil {
		return err
	}
	if !slices.Contains(failOns(), o.failOn) {
		return usagef("--fail-on %s: use %s", o.failOn, strings.Join(failOns(), ", "))
	}
	if len(o.windows) > 0 && o.cluster.named() {
		return usagef("--windows and --kubeconfig exclude each other: the nodes are those of the cluster")
	}
	if o.containerd != "" && len(o.windows) == 0 {
		return usagef("--containerd is that of the nodes of --windows: name a release or a build")
	}
	if a.choosesNodes() && len(o.windows) > 0 {
		return nodesWithoutCluster()
	}
	o.files = append(o.files, o.manifests...)
	if err := o.planned(); err != nil {
		return err
	}
	credential, err := login.Docker()
	if err != nil {
		return err
	}
	o.registry, err = newRegistry(credential, o.mirrors)
	return err
}

// planned sets the nodes of --windows and --containerd.
func (o *imageCheckOptions) planned() error {
	containerd := o.containerd
	if containerd == "" {
		containerd = newestContainerd
	}
	windows := o.windows
	if len(windows) == 0 {
		windows = upgradecheck.WindowsReleases()
	}
	for _, name := range windows {
		build := name
		if release, ok := imagefit.ReleaseNamed(name); ok {
			build = release.BuildLabel()
		}
		host, err := imagefit.ParseBuild(build)
		if err != nil {
			return usagef("--windows %s: use a release such as %s, or a build such as 10.0.26100.2894", name,
				strings.Join(upgradecheck.WindowsReleases(), ", "))
		}
		if _, err := imagefit.NewMatcher(containerd, host); err != nil {
			return usagef("--containerd: %v", err)
		}
		o.nodes = append(o.nodes, imagecheck.Node{Name: name, Windows: build, Containerd: containerd})
	}
	return nil
}

func (a *app) runImageCheck(ctx context.Context, o *imageCheckOptions) error {
	if err := o.complete(a); err != nil {
		return err
	}
	table, err := kubesettings.Load()
	if err != nil {
		return err
	}
	reader := upgradecheck.NewReader(table)
	if err := a.readTexts(reader, o.files, "-f: "); err != nil {
		return err
	}
	named := len(o.images) > 0 || len(o.files) > 0
	bounded, cancel := a.global.bounded(ctx)
	defer cancel()
	nodes, err := a.imageNodes(bounded, o, reader, table, named)
	if err != nil {
		return err
	}
	uses := imageUses(o.images, reader.Pods)
	if len(uses) == 0 {
		return o.noImages()
	}
	report, err := imagecheck.Check(bounded, o.registry, nodes, uses, time.Now())
	if err != nil {
		return explain(bounded, err)
	}
	unread := len(report.Unread)
	for _, u := range reader.Unread {
		report.Unread = append(report.Unread, imagecheck.Unread{Name: u.Place.String(), Why: u.Why})
	}
	for i := range report.Findings {
		report.Findings[i].Remedy = a.remedies("", report.Findings[i].Remedy)
	}
	if err := a.print(report, report.WriteText); err != nil {
		return err
	}
	switch {
	case o.failOn != never && report.Has(finding.Severity(o.failOn)):
		return &exitError{code: exitFinding}
	case unread > 0:
		return fmt.Errorf("%d of %d images could not be read: correct what is named there, or name a mirror with --registry-mirror",
			unread, len(uses))
	}
	return nil
}

// imageNodes returns the nodes of the cluster, if one is named or set, else those of the flags. If named is false, the images of
// the cluster's workloads are read too.
func (a *app) imageNodes(ctx context.Context, o *imageCheckOptions, r *upgradecheck.Reader, table *kubesettings.Table, named bool) ([]imagecheck.Node, error) {
	if len(o.windows) > 0 && named {
		return o.nodes, nil
	}
	story := a.newStory()
	defer story.End()
	c, err := a.optionalCluster(ctx, &o.cluster, story.Node(""), "the nodes are the supported releases of Windows Server")
	if err == nil && c == nil && a.choosesNodes() {
		err = nodesWithoutCluster()
	}
	if err != nil || c == nil {
		return o.nodes, err
	}
	o.asked = true
	selector, err := labels.Parse(a.global.selector)
	if err != nil {
		return nil, usagef("-l %s: %v; write labels as in pool=a,!gpu", a.global.selector, err)
	}
	live := upgradecheck.NewReader(table)
	present, err := upgradelive.ReadImages(ctx, c, live, upgradelive.Options{Nodes: a.global.nodes, Selector: selector, Workloads: true, Pods: !named})
	var none *upgradelive.NoSuchNodeError
	if errors.As(err, &none) {
		return nil, usagef("%s: %v", a.nodesFlag(), err)
	}
	if err != nil {
		return nil, unreachable(explain(ctx, err))
	}
	if !named {
		r.Pods, r.Unread = live.Pods, live.Unread
	}
	if len(o.windows) > 0 {
		return o.nodes, nil
	}
	switch {
	case len(live.Nodes) == 0 && a.global.selector != "":
		return nil, a.noWindowsNode(nil)
	case len(live.Nodes) == 0:
		return nil, errors.New("the cluster has no Windows node: add one with `swdt join`, or name releases with --windows instead of a cluster")
	}
	var nodes []imagecheck.Node
	for _, n := range live.Nodes {
		nodes = append(nodes, imagecheck.Node{Name: n.Name, Windows: n.Build, Containerd: n.Containerd, Images: present[n.Name]})
	}
	return nodes, nil
}

// choosesNodes reports whether -n or -l is given.
func (a *app) choosesNodes() bool { return len(a.global.nodes) > 0 || a.global.selector != "" }

// nodesWithoutCluster returns the error for -n or -l if no cluster is asked for its nodes.
func nodesWithoutCluster() error {
	return usagef("-n and -l choose nodes of a cluster: name it with --kubeconfig, and no --windows")
}

// noImages returns the error for a check without an image.
func (o *imageCheckOptions) noImages() error {
	switch {
	case len(o.files) > 0:
		return usagef("there is no image to check: the manifests have no pods for Windows with an image")
	case o.asked:
		return usagef("there is no image to check: no object of the cluster has pods for Windows: name images")
	}
	return usagef("there is no image to check: name images, or manifests with pods for Windows, or the cluster with --kubeconfig")
}

// imageUses returns the images that are named, and those of pods, each once.
func imageUses(named []string, pods []upgradecheck.Pods) []imagecheck.Use {
	var all []imagecheck.Use
	at := map[string]int{}
	for _, image := range named {
		if _, ok := at[image]; !ok {
			at[image] = len(all)
			all = append(all, imagecheck.Use{Image: image})
		}
	}
	for _, p := range pods {
		for _, image := range p.Images {
			place, ok := at[image]
			if !ok {
				place = len(all)
				at[image] = place
				all = append(all, imagecheck.Use{Image: image, HostProcess: true})
			}
			use := &all[place]
			use.HostProcess = use.HostProcess && p.HostProcess
			if by := usedBy(p); !slices.Contains(use.By, by) {
				use.By = append(use.By, by)
			}
		}
	}
	return all
}

// usedBy returns what has the pods, such as DaemonSet kube-system/kube-proxy.
func usedBy(p upgradecheck.Pods) string {
	if p.Place.Object != "" {
		return p.Place.Object
	}
	return p.Place.String()
}
