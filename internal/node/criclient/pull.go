package criclient

import (
	"context"
	"fmt"
	"slices"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/wire/distribution"
)

// Pulled is an image that the runtime has.
type Pulled struct {
	Name string `json:"name"` // the image's name in the caller's spelling
	// Digest is the digest of the image's manifest, sha256:…; empty if the runtime does not
	// report it.
	Digest string `json:"digest"`
	ID     string `json:"id"`
	Size   uint64 `json:"size"` // bytes
	// digests are those of the image in the repository of Name: a tag that moved while the image stayed the same has two.
	digests []string
}

// Is reports whether the image is the one that a repository has under a digest.
func (p Pulled) Is(digest string) bool {
	return digest != "" && (p.Digest == digest || slices.Contains(p.digests, digest))
}

// PullOptions are the login and the progress of a pull.
type PullOptions struct {
	// Login is the login for the image's registry; nil: none. It is in the request alone, as kubelet sends it.
	Login *runtimev1.AuthConfig
	// Progress receives how many bytes containerd has downloaded since the call before; nil: nothing does. It is not called
	// for a runtime that does not report downloads.
	Progress func(n int64)
}

// Pull makes the runtime pull an image, and returns the image that the runtime has afterwards. The request is that of
// kubelet for a pod without a RuntimeClass, so the image is unpacked for the snapshotter of the default handler.
func (c *Client) Pull(ctx context.Context, name string, o PullOptions) (Pulled, error) {
	stop := c.watchDownloads(ctx, o.Progress)
	defer stop()
	image := &runtimev1.ImageSpec{Image: name}
	if _, err := c.Images.PullImage(ctx, &runtimev1.PullImageRequest{Image: image, Auth: o.Login}); err != nil {
		return Pulled{}, fmt.Errorf("pull the image %s: %w", name, err)
	}
	has, found, err := c.Image(ctx, name)
	if err == nil && !found {
		err = fmt.Errorf("pull the image %s: the runtime does not list it afterwards", name)
	}
	return has, err
}

// Image returns the image that the runtime has by this name. found is false if it has none.
func (c *Client) Image(ctx context.Context, name string) (has Pulled, found bool, err error) {
	status, err := c.Images.ImageStatus(ctx, &runtimev1.ImageStatusRequest{Image: &runtimev1.ImageSpec{Image: name}})
	if err != nil {
		return Pulled{}, false, fmt.Errorf("look at the image %s: %w", name, err)
	}
	is := status.GetImage()
	if is == nil {
		return Pulled{}, false, nil
	}
	has = Pulled{Name: name, ID: is.GetId(), Size: is.GetSize(), digests: digestsOf(is, name)}
	if len(has.digests) > 0 {
		has.Digest = has.digests[len(has.digests)-1]
	}
	return has, true, nil
}

// digestsOf returns the digests of the image's manifests in the repository that a name has, the newest last. containerd lists
// them by the names of all repositories from which the image was pulled.
func digestsOf(image *runtimev1.Image, name string) (all []string) {
	at, err := distribution.ParseImage(name)
	if err != nil {
		return nil
	}
	for _, reference := range image.GetRepoDigests() {
		of, err := distribution.ParseImage(reference)
		if err == nil && of.Registry == at.Registry && of.Repository == at.Repository {
			all = append(all, of.Digest)
		}
	}
	return all
}
