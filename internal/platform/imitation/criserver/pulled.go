package criserver

import (
	"context"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Pulled has the images that were pulled. Like a real runtime's disk, it outlives the runtime's
// process. The zero value is empty.
type Pulled struct {
	mu     sync.Mutex
	images []Image
}

// Images returns the images.
func (p *Pulled) Images() []Image {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.images)
}

// Add adds an image unless an image with the same ID is there already.
func (p *Pulled) Add(image Image) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.images, func(i Image) bool { return i.ID == image.ID }) {
		p.images = append(p.images, image)
	}
}

// PullImage pretends to pull an image. An image exists for each name that does not contain
// "missing". As with a real registry, the same name always has the same digest, and a name with a digest has that one
// (updateImage in internal/cri/server/images/image_pull.go of containerd 2.4.2).
func (s *imageService) PullImage(_ context.Context, request *runtimev1.PullImageRequest) (
	*runtimev1.PullImageResponse, error) {
	ref := request.GetImage().GetImage()
	for _, image := range s.images() {
		if image.Tag == ref {
			return &runtimev1.PullImageResponse{ImageRef: image.image().Id}, nil
		}
	}
	switch {
	case s.offline:
		return nil, status.Errorf(codes.Unknown, "failed to pull and unpack image %q: failed to resolve reference: "+
			"dial tcp: lookup registry: no such host", ref)
	case strings.Contains(ref, "missing"):
		return nil, status.Errorf(codes.NotFound, "failed to pull and unpack image %q: not found", ref)
	}
	name, digest, pinned := strings.Cut(ref, "@")
	if !pinned {
		digest = "sha256:" + id("manifest of "+ref)
	}
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name = name[:colon]
	}
	image := Image{ID: id(ref), Tag: ref, Size: 100 << 20, Digest: name + "@" + digest}
	s.removed.forget(image.ID)
	s.pulled.Add(image)
	return &runtimev1.PullImageResponse{ImageRef: image.image().Id}, nil
}
