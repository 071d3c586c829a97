package bake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/join"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/plan"
	"github.com/swdt-dev/swdt/internal/push"
	"github.com/swdt-dev/swdt/internal/setup"
)

// pullLimit bounds the pulling of one image: an image of Windows has gigabytes.
const pullLimit = 30 * time.Minute

func (b *oven) setupSteps() []plan.Step {
	return setup.Steps(b.node, b.doc.Node.Spec.Setup, setup.Options{Resolve: b.doc.Resolve})
}

func names(steps []plan.Step) string {
	var all []string
	for _, step := range steps {
		all = append(all, step.Name())
	}
	return strings.Join(all, ", ")
}

// run runs steps, as `swdt setup` and `swdt join` do. It may reboot the machine, which is swdt's
// own temporary VM.
func (b *oven) run(ctx context.Context, steps []plan.Step, ordered bool) (string, error) {
	results, err := plan.Run(ctx, steps,
		plan.Options{Machine: b.node, AllowReboot: true, Ordered: ordered, Holder: b.options.Holder}, b.reporter)
	var done []string
	for _, result := range results {
		if result.State == plan.Changed {
			done = append(done, result.Name)
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(done) == 0:
		return "nothing to do", nil
	}
	return "changed " + strings.Join(done, ", "), nil
}

func (b *oven) setUp(ctx context.Context) (string, error) { return b.run(ctx, b.setupSteps(), false) }

func (b *oven) kubernetesChange() string {
	k := b.doc.Node.Spec.Kubernetes
	containerd := k.Containerd.Version
	if containerd == "" {
		containerd = "of " + k.Containerd.Source
	}
	return fmt.Sprintf("install containerd %s and Kubernetes %s, as a join does before it joins", containerd, k.Version)
}

func (b *oven) installKubernetes(ctx context.Context) (string, error) {
	steps, err := join.Prepare(b.node, b.doc, join.Options{
		Artifacts: b.options.Artifacts, Sources: b.options.Sources, Depot: b.options.Depot, Mirror: b.options.Mirror,
		Holder: b.options.Holder, Reporter: b.reporter,
	})
	if err != nil {
		return "", err
	}
	return b.run(ctx, steps, true)
}

func provisionerNames(doc config.Document) string {
	var all []string
	for _, p := range doc.Node.Spec.Kubernetes.Provisioners {
		all = append(all, p.Name)
	}
	return strings.Join(all, ", ")
}

func (b *oven) pushBinaries(ctx context.Context) (string, error) {
	result, err := push.Push(ctx, b.node, b.doc, push.Options{
		Sources: b.options.Sources, Depot: b.options.Depot, Holder: b.options.Holder,
	}, b.reporter)
	if err != nil {
		return "", push.Shown(result, err)
	}
	return string(result.Result), nil
}

func (b *oven) pulls() bool {
	return b.hasKubernetes() && !b.options.NoPull
}

func (b *oven) imagesChange() string {
	change := "pull the image of pod sandboxes"
	if len(b.options.Images) > 0 {
		change += ", " + strings.Join(b.options.Images, ", ")
	}
	return change
}

// pullImages makes containerd pull the image of pod sandboxes and the images that the user wants.
func (b *oven) pullImages(ctx context.Context) (message string, err error) {
	pause, err := join.PauseImage(ctx, b.node)
	if err != nil {
		return "", err
	}
	wanted := slices.Clone(b.options.Images)
	if pause != "" && !slices.Contains(wanted, pause) {
		wanted = append([]string{pause}, wanted...)
	}
	client, err := criclient.Open(ctx, b.node, v1alpha1.ContainerdPipe, criclient.Options{Limit: pullLimit})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for _, image := range wanted {
		b.reporter.Step("pulling %s", image)
		pulled, err := client.Pull(ctx, image, criclient.PullOptions{})
		if err != nil {
			return "", fmt.Errorf("%w; the VM needs a way to the registry, or leave the images out with --no-pull", err)
		}
		b.manifest.Images = append(b.manifest.Images, pulled)
	}
	return strings.Join(wanted, ", "), nil
}
