package simulated

import (
	"context"
	"slices"
	"sync"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Removed are the ids of the pods and images that a runtime was told to remove. It
// outlives the runtime's process, as its disk does. The zero value is none.
type Removed struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (r *Removed) add(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil {
		r.ids = map[string]bool{}
	}
	r.ids[id] = true
}

// Has is whether that was removed.
func (r *Removed) Has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[id]
}

// pods are those that were not removed.
func (s *runtimeService) pods() []Pod {
	return slices.DeleteFunc(slices.Clone(s.Workload.Pods), func(p Pod) bool { return s.Removed.Has(p.ID) })
}

// StopPodSandbox has nothing to do: these pods only burn time. One that is not
// there is stopped, as with containerd.
func (s *runtimeService) StopPodSandbox(context.Context, *runtimev1.StopPodSandboxRequest) (*runtimev1.StopPodSandboxResponse, error) {
	return &runtimev1.StopPodSandboxResponse{}, nil
}

// RemovePodSandbox removes a pod with its containers.
func (s *runtimeService) RemovePodSandbox(_ context.Context, request *runtimev1.RemovePodSandboxRequest) (*runtimev1.RemovePodSandboxResponse, error) {
	s.Removed.add(request.GetPodSandboxId())
	return &runtimev1.RemovePodSandboxResponse{}, nil
}

// images are those that were not removed.
func (s *imageService) images() []Image {
	return slices.DeleteFunc(slices.Clone(s.workload.Images), func(i Image) bool { return s.removed.Has(i.ID) })
}

// RemoveImage takes an image's id or its tag.
func (s *imageService) RemoveImage(_ context.Context, request *runtimev1.RemoveImageRequest) (*runtimev1.RemoveImageResponse, error) {
	for _, image := range s.images() {
		if wanted := request.GetImage().GetImage(); wanted == image.Tag || wanted == image.image().Id {
			s.removed.add(image.ID)
		}
	}
	return &runtimev1.RemoveImageResponse{}, nil
}
