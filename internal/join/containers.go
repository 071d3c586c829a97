package join

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/ui"
)

// clearedWithin bounds the time in which containerd removes its data: a Windows image has
// layers of gigabytes.
const clearedWithin = 5 * time.Minute

// keepsOurs reports whether the join has created containerd's data folder. A reset then
// removes all of containerd's data.
func keepsOurs(r record) bool {
	return slices.ContainsFunc(r.Folders,
		func(f folderRecord) bool { return f.Data && strings.EqualFold(f.Path, containerdData) })
}

// clearContainers makes containerd remove its pods and images while it is still running. No
// other program can do that afterwards, since not even an administrator may remove the
// files of image layers. It reports the pods and images that containerd could not remove;
// the step that removes containerd's folder handles them.
func clearContainers(ctx context.Context, n *node.Node, r ui.Reporter) error {
	is, err := service(ctx, n, containerdName)
	if err != nil || is == nil || !running(is) {
		return err
	}
	client, err := criclient.Open(ctx, n, v1alpha1.ContainerdPipe, criclient.Options{})
	if err != nil {
		return err
	}
	r.Step("having containerd remove its pods and images")
	bounded, cancel := context.WithTimeout(ctx, clearedWithin)
	defer cancel()
	done, err := client.Clear(bounded)
	err = errors.Join(err, client.Close())
	if ctx.Err() != nil || lost(err) {
		return fmt.Errorf("have containerd remove its pods and images: %w", err)
	}
	if err != nil {
		r.Warn("containerd did not remove all of its pods and images; continuing: %v", err)
	}
	r.Debug("containerd removed %d pods and %d images", done.Pods, done.Images)
	return nil
}
