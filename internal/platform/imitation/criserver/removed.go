package criserver

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Removed is the set of the ids of removed pods and images. Like a real runtime's disk, it outlives
// the runtime's process. The zero value is empty.
type Removed struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (r *Removed) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, id)
}

func (r *Removed) add(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = map[string]bool{}
	}
	r.ids[id] = true
}

// Has reports whether the pod or image with this id was removed.
func (r *Removed) Has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[id]
}

// pods returns the pods that were not removed.
func (s *runtimeService) pods() []Pod {
	return slices.DeleteFunc(slices.Clone(s.Workload.Pods), func(p Pod) bool { return s.Removed.Has(p.ID) })
}

// StopPodSandbox does nothing: these pods only use CPU time. A missing pod is an error in containerd before 1.7.21
// (pkg/cri/server/sandbox_stop.go), and counts as stopped since then.
func (s *runtimeService) StopPodSandbox(_ context.Context, request *runtimev1.StopPodSandboxRequest) (
	*runtimev1.StopPodSandboxResponse, error) {
	id := request.GetPodSandboxId()
	if !s.isAtLeast("1.7.21") && !slices.ContainsFunc(s.pods(), func(p Pod) bool { return p.ID == id }) {
		return nil, status.Errorf(codes.NotFound, "an error occurred when try to find sandbox %q: not found", id)
	}
	return &runtimev1.StopPodSandboxResponse{}, nil
}

// RemovePodSandbox removes a pod with its containers.
func (s *runtimeService) RemovePodSandbox(_ context.Context, request *runtimev1.RemovePodSandboxRequest) (
	*runtimev1.RemovePodSandboxResponse, error) {
	s.Removed.add(request.GetPodSandboxId())
	return &runtimev1.RemovePodSandboxResponse{}, nil
}

// images returns the images that were not removed.
func (s *imageService) images() []Image {
	all := append(slices.Clone(s.workload.Images), s.pulled.Images()...)
	return slices.DeleteFunc(all, func(i Image) bool { return s.removed.Has(i.ID) })
}

// RemoveImage removes the image that an id or a tag names. A missing image is not an error.
func (s *imageService) RemoveImage(_ context.Context, request *runtimev1.RemoveImageRequest) (
	*runtimev1.RemoveImageResponse, error) {
	for _, image := range s.images() {
		if wanted := request.GetImage().GetImage(); wanted == image.Tag || wanted == image.image().Id {
			s.removed.add(image.ID)
		}
	}
	return &runtimev1.RemoveImageResponse{}, nil
}
