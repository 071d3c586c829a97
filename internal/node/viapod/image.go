package viapod

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

// mostImages bounds the images that are tried one after the other.
const mostImages = 3

// trusted returns the registries whose images may become the root of a pod that is SYSTEM. Windows looks for cmd.exe in
// the root of such a container first (hcsshim, internal/jobcontainers/path.go), so other images are not used.
func trusted() []string { return []string{"registry.k8s.io/", "mcr.microsoft.com/"} }

// images returns the images to try, in this order. If the user has named none, images that the node already has come
// first: they need no pull, and Windows has already unpacked them. DefaultImage may not unpack: its registry hives are
// empty files, which Windows Server 2025 may refuse (microsoft/windows-host-process-containers-base-image, pull requests
// 15 and 16, December 2025).
func (w *Way) images() []string {
	if w.named {
		return []string{w.o.Image}
	}
	all := slices.Clone(w.present)
	if slices.Contains(all, DefaultImage) {
		all = append([]string{DefaultImage}, slices.DeleteFunc(all, func(i string) bool { return i == DefaultImage })...)
		return all[:min(len(all), mostImages)]
	}
	return append(all[:min(len(all), mostImages-1)], DefaultImage)
}

// imagesOn returns the names of a node's images of trusted registries: those of pause first, which are on each node, and
// then the others, the smallest first.
func imagesOn(n *corev1.Node) (names []string) {
	images := slices.Clone(n.Status.Images)
	pause := func(i corev1.ContainerImage) int {
		if slices.ContainsFunc(i.Names, func(name string) bool { return strings.Contains(name, "/pause:") }) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(images, func(a, b corev1.ContainerImage) int {
		if c := pause(a) - pause(b); c != 0 {
			return c
		}
		return int(a.SizeBytes>>20) - int(b.SizeBytes>>20)
	})
	for _, image := range images {
		for _, name := range image.Names {
			from := func(registry string) bool { return strings.HasPrefix(name, registry) }
			if !strings.Contains(name, "@") && slices.ContainsFunc(trusted(), from) {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// startOne makes the pod with the first of the images that starts.
func (w *Way) startOne(ctx context.Context) error {
	all := w.images()
	for i, image := range all {
		w.o.Image = image
		if err := w.makePod(ctx); err != nil {
			return err
		}
		err := w.awaitPod(ctx)
		if err == nil {
			w.o.Reporter.Debug("the pod on %s has image %s", w.o.Node, image)
			return nil
		}
		w.abandon(ctx)
		state, ok := errors.AsType[*NotStartedError](err)
		if !ok || !state.image || i == len(all)-1 || ctx.Err() != nil {
			return err
		}
		w.endGrace = interrupt.AllowTime(ctx, answerLimit+leaveLimit) // abandon has given the first one back
		w.o.Reporter.Info("node %s does not start image %s: %s; trying %s", w.o.Node, image, state.Cause, all[i+1])
	}
	return nil
}
