package join

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/criclient"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// clearedWithin bounds how long containerd may take to remove what it keeps: a
// Windows image has layers of gigabytes.
const clearedWithin = 5 * time.Minute

// keepsOurs is whether all that containerd keeps goes with a reset.
func keepsOurs(r record) bool {
	return slices.ContainsFunc(r.Folders, func(f folderRecord) bool { return f.Data && strings.EqualFold(f.Path, containerdData) })
}

// clearContainers has containerd remove its pods and images as long as it runs:
// afterwards nobody can, since not even an administrator may remove the layers of
// images as the files that they are. What it could not is told, and left to the
// removal of its folder.
func clearContainers(ctx context.Context, n *node.Node, r ui.Reporter) error {
	is, err := service(ctx, n, containerdName)
	if err != nil || is == nil || !running(is) {
		return err
	}
	client, err := criclient.New(ctx, func(ctx context.Context) (net.Conn, error) { return n.DialPipe(ctx, v1alpha1.ContainerdPipe) })
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
		r.Warn("containerd did not remove all of its pods and images; going on without: %v", err)
	}
	r.Debug("containerd removed %d pods and %d images", done.Pods, done.Images)
	return nil
}
