package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/swdt-dev/swdt/internal/cluster/kubesettings"
	"github.com/swdt-dev/swdt/internal/cluster/placement"
	"github.com/swdt-dev/swdt/internal/cluster/upgradecheck"
	"github.com/swdt-dev/swdt/internal/cluster/upgradelive"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/fleet"
	"github.com/swdt-dev/swdt/internal/inspect/imagecheck"
	"github.com/swdt-dev/swdt/internal/inspect/imagepull"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/obtain/login"
	"github.com/swdt-dev/swdt/internal/rollout"
	"github.com/swdt-dev/swdt/internal/rollout/waves"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// imagePullOptions are the flags of image pull.
type imagePullOptions struct {
	cluster   clusterOptions
	manifests []string
	mirrors   []string
	force     bool
	sendLogin bool

	images   []string
	registry *imagecheck.Registry
	logins   imagepull.Logins
}

func (a *app) imagePullCommand() *cobra.Command {
	o := &imagePullOptions{}
	cmd := canDryRun(forNodes(&cobra.Command{
		Use:        "pull [IMAGE…] [flags]",
		Short:      "Make nodes pull images before pods need them",
		SuggestFor: []string{"prefetch", "fetch", "preload", "warm"},
		Long: `Makes the containerd of each node pull images, with the request of kubelet. The
images are the named ones, those of --manifests, or those that the workloads of
the cluster of --kubeconfig need on the node. With that cluster, a node pulls
only what is scheduled to it: by selectors, affinity and taints.

First it looks at all nodes, and computes what image check computes. If a node
cannot take or run an image, nothing is pulled; --force pulls it nevertheless.
An image that the node has with the digest of the registry is unchanged.

The first node pulls alone, then at most --parallel nodes at a time. After a
failure no further node begins; the same command goes on later with those that
remain. If your machine cannot read a registry, it warns, and the node tries.

A node gets no login unless --send-login is given. The login is then in the
request to containerd alone. It never removes images.`,
		Example: examples(
			"image pull IMAGE --to win-1", "",
			"image pull IMAGE --via kubernetes -l kubernetes.io/os=windows", "",
			"image pull --kubeconfig admin.conf --parallel 3", "",
			"image pull --manifests ./manifests --dry-run", "",
		),
		Args: arguments(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.images = args
			return a.runImagePull(cmd.Context(), o)
		},
	}))
	o.cluster.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringSliceVar(&o.manifests, "manifests", nil, "`file or folder` to read, as with --filename")
	flags.StringSliceVar(&o.mirrors, "registry-mirror", nil, "`HOST=URL` of a mirror that is read instead of a registry; _default=URL for all others")
	flags.BoolVar(&o.force, "force", false, "pull even if the node does not take the image, or does not run it")
	flags.BoolVar(&o.sendLogin, "send-login", false, "send the login of docker login for an image's registry to the node")
	must(cmd.MarkFlagFilename("manifests"))
	return cmd
}

// complete checks the flags without contacting anything.
func (o *imagePullOptions) complete(a *app) error {
	if err := a.global.validate(); err != nil {
		return err
	}
	if len(o.images) == 0 && len(o.manifests) == 0 && !o.cluster.named() {
		return usagef("there is no image to pull: name images, or --manifests with pods for Windows, or the cluster with --kubeconfig")
	}
	for _, image := range o.images {
		if _, err := distribution.ParseImage(image); err != nil {
			return usagef("%v", err)
		}
	}
	credential, err := login.Docker()
	if err != nil {
		return err
	}
	if o.registry, err = newRegistry(credential, o.mirrors); err != nil {
		return err
	}
	o.logins = imagepull.NoLogins
	if o.sendLogin {
		o.logins = imagepull.LoginsOf(credential)
	}
	return nil
}

func (a *app) runImagePull(ctx context.Context, o *imagePullOptions) error {
	if err := o.complete(a); err != nil {
		return err
	}
	s, err := a.begin()
	if err != nil {
		return err
	}
	defer s.story.End()
	ctx, cancel := a.global.bounded(ctx)
	defer cancel()
	wants, err := a.wantedImages(ctx, o)
	if err != nil {
		return err
	}
	uses := imageUses(o.images, wants.pods)
	if len(uses) == 0 {
		return usagef("there is no image to pull: there are no pods for Windows with an image")
	}
	looked := o.look(ctx, s, wants)
	results := make([]fleet.Result[[]imagepull.ImageResult], len(looked))
	if fleet.Failures(looked) == nil {
		if results, err = o.pull(ctx, s, looked, uses); err != nil {
			return explain(ctx, err)
		}
	} else {
		for i, one := range looked {
			results[i].Document, results[i].Err = one.Document, one.Err
			if one.Err == nil {
				results[i].Err = &waves.NotBegunError{Why: "another node could not be looked at: repair that, or leave that node out"}
			}
		}
	}
	report := imagepull.NewReport(results)
	return errors.Join(a.print(report, report.WriteText), fleet.Failures(results))
}

// wanted are the pods whose images are pulled, and the nodes of their cluster.
type wanted struct {
	pods  []upgradecheck.Pods
	nodes map[string]*corev1.Node // by name; nil: no cluster is known
}

// wantedImages reads the pods of the manifests and, without manifests and named images, those of the cluster.
func (a *app) wantedImages(ctx context.Context, o *imagePullOptions) (w wanted, err error) {
	table, err := kubesettings.Load()
	if err != nil {
		return w, err
	}
	reader := upgradecheck.NewReader(table)
	if err := a.readTexts(reader, o.manifests, "--manifests: "); err != nil {
		return w, err
	}
	if o.cluster.named() {
		c, err := o.cluster.open()
		if err != nil {
			return w, err
		}
		windows, err := c.NodeObjects(ctx, labels.SelectorFromSet(labels.Set{corev1.LabelOSStable: string(corev1.Windows)}))
		if err != nil {
			return w, unreachable(explain(ctx, err))
		}
		w.nodes = map[string]*corev1.Node{}
		for _, n := range windows {
			w.nodes[n.Name] = n
		}
		if len(o.images) == 0 && len(o.manifests) == 0 {
			if _, err := upgradelive.ReadImages(ctx, c, reader, upgradelive.Options{Workloads: true, Pods: true}); err != nil {
				return w, unreachable(explain(ctx, err))
			}
		}
	}
	story := a.newStory()
	defer story.End()
	for _, u := range reader.Unread {
		story.Node("").Warn("not read: %s: %s", u.Place, u.Why)
	}
	w.pods = reader.Pods
	return w, nil
}

// on returns the images for a node by the name of its Node object: the named ones, and those of pods that it takes.
func (w wanted) on(name string, images []string) []string {
	all := []string{}
	for _, image := range images {
		if !slices.Contains(all, image) {
			all = append(all, image)
		}
	}
	for _, p := range w.pods {
		if n := w.nodes[name]; n != nil && placement.Refuses(n, p.Spec) != "" {
			continue
		}
		for _, image := range p.Images {
			if !slices.Contains(all, image) {
				all = append(all, image)
			}
		}
	}
	return all
}

// lookedAt is a node before the pulls.
type lookedAt struct {
	is     imagecheck.Node
	images []string // that it should have
	has    map[string]criclient.Pulled
}

// look asks all nodes what they are and have.
func (o *imagePullOptions) look(ctx context.Context, s *session, w wanted) []fleet.Result[lookedAt] {
	return fleet.Run(ctx, s.documents, s.app.global.parallel, func(ctx context.Context, doc config.Document) (lookedAt, error) {
		return workOn(ctx, s, doc, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) (l lookedAt, err error) {
			name := ""
			if w.nodes != nil {
				if name, err = n.ObjectName(ctx, doc.Node.Spec.Kubernetes.Join); err != nil {
					return l, err
				}
				if w.nodes[name] == nil {
					return l, fmt.Errorf("find the node in the cluster: it has no Windows node %q; `kubectl get nodes -l %s=windows` lists them", name, corev1.LabelOSStable)
				}
			}
			l.images = w.on(name, o.images)
			l.is, l.has, err = imagepull.Look(ctx, n, doc.RuntimePipe(), l.images, r)
			return l, err
		})
	})
}

// pull decides what each node pulls and, unless a node refuses an image, pulls it.
func (o *imagePullOptions) pull(ctx context.Context, s *session, looked []fleet.Result[lookedAt], uses []imagecheck.Use) ([]fleet.Result[[]imagepull.ImageResult], error) {
	var nodes []imagecheck.Node
	for _, one := range looked {
		nodes = append(nodes, one.Value.is)
	}
	check, err := imagecheck.Check(ctx, o.registry, nodes, uses, time.Now())
	if err != nil {
		return nil, err
	}
	for _, u := range check.Unread {
		s.story.Node("").Warn("%s is not checked, and the nodes try to pull it: %s", u.Name, u.Why)
	}
	plans, results := map[string][]imagepull.Step{}, make([]fleet.Result[[]imagepull.ImageResult], len(looked))
	var refused error
	for i, one := range looked {
		plan := imagepull.Plan(check, one.Value.is.Name, one.Value.images, one.Value.has, o.force)
		plans[one.Name()] = plan
		results[i].Document, results[i].Value = one.Document, imagepull.Results(plan)
		if err := imagepull.Refusal(plan); err != nil {
			results[i].Err, refused = err, err
		}
	}
	if refused != nil || s.app.global.dryRun {
		for i := range results {
			if refused != nil && results[i].Err == nil {
				results[i].Err = &waves.NotBegunError{Why: "another node refuses an image: leave the image or that node out, or pull with --force"}
			}
		}
		return results, nil
	}
	return inTurn(ctx, s, results, func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) ([]imagepull.ImageResult, error) {
		return imagepull.Pull(ctx, n, doc.RuntimePipe(), plans[doc.Node.Metadata.Name], o.logins, r)
	}, func(doc config.Document) bool {
		return slices.ContainsFunc(plans[doc.Node.Metadata.Name], func(step imagepull.Step) bool { return step.Pull })
	}), nil
}

// inTurn does the work on the nodes that need it, on at most --parallel at a time. None begins after a failure. A node on which
// the work has not begun keeps its result of before.
func inTurn(ctx context.Context, s *session, results []fleet.Result[[]imagepull.ImageResult],
	work func(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter) ([]imagepull.ImageResult, error), needs func(config.Document) bool,
) []fleet.Result[[]imagepull.ImageResult] {
	at := map[string]int{}
	var names []string
	var ready []rollout.Node
	for i, one := range results {
		if needs(one.Document) {
			names, at[one.Name()] = append(names, one.Name()), i
			ready = append(ready, rollout.Node{Name: one.Name(), Ready: true})
		}
	}
	if len(names) == 0 {
		return results
	}
	gates := waves.Options{
		MaxUnavailable: intstr.FromInt(max(1, s.app.global.parallel)),
		Look:           func(context.Context) ([]rollout.Node, error) { return ready, nil }, // a pull takes no node away
		Waits:          func(why string) { s.story.Node("").Step("waiting: %s", why) },
	}
	errs := waves.Run(ctx, names, gates, func(ctx context.Context, name string) error {
		value, err := workOn(ctx, s, results[at[name]].Document, work)
		if value != nil {
			results[at[name]].Value = value
		}
		return err
	})
	for name, err := range errs {
		results[at[name]].Err = err
	}
	return results
}

// newRegistry returns the registries, or their mirrors, from which images are read.
func newRegistry(credential auth.CredentialFunc, mirrors []string) (*imagecheck.Registry, error) {
	registry := &imagecheck.Registry{Credential: credential, Mirrors: map[string]imagecheck.Mirror{}}
	for _, text := range mirrors {
		host, mirror, err := imagecheck.ParseMirror(text)
		if err != nil {
			return nil, usagef("--registry-mirror: %v", err)
		}
		registry.Mirrors[host] = mirror
	}
	return registry, nil
}
