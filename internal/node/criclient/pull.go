package criclient

import (
	"context"
	"fmt"
	"strings"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Pulled is an image that the runtime has.
type Pulled struct {
	Name string `json:"name"` // the image's name in the caller's spelling
	// Digest is the digest of the image's manifest, sha256:…; empty if the runtime does not
	// report it.
	Digest string `json:"digest"`
	ID     string `json:"id"`
	Size   uint64 `json:"size"` // bytes
}

// Pull makes the runtime pull an image without credentials, and returns the image that the runtime
// has afterwards.
func (c *Client) Pull(ctx context.Context, name string) (Pulled, error) {
	image := &runtimev1.ImageSpec{Image: name}
	if _, err := c.Images.PullImage(ctx, &runtimev1.PullImageRequest{Image: image}); err != nil {
		return Pulled{}, fmt.Errorf("pull the image %s: %w", name, err)
	}
	status, err := c.Images.ImageStatus(ctx, &runtimev1.ImageStatusRequest{Image: image})
	if err != nil {
		return Pulled{}, fmt.Errorf("look at the image %s: %w", name, err)
	}
	is := status.GetImage()
	if is == nil {
		return Pulled{}, fmt.Errorf("pull the image %s: the runtime does not list it afterwards", name)
	}
	return Pulled{Name: name, Digest: digestOf(is), ID: is.GetId(), Size: is.GetSize()}, nil
}

// digestOf returns the digest of the image's manifest, or "".
func digestOf(image *runtimev1.Image) string {
	for _, reference := range image.GetRepoDigests() {
		if _, digest, ok := strings.Cut(reference, "@"); ok {
			return digest
		}
	}
	return ""
}
