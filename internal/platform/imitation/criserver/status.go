package criserver

import (
	"context"
	"encoding/json"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerStatus returns a container's CPU limit, as containerd does from 1.7 on. If the caller
// requests details, it also returns the container's process.
func (s *runtimeService) ContainerStatus(_ context.Context, request *runtimev1.ContainerStatusRequest) (
	*runtimev1.ContainerStatusResponse, error) {
	for _, pod := range s.pods() {
		for _, c := range pod.Containers {
			if c.ID == request.GetContainerId() {
				return &runtimev1.ContainerStatusResponse{Status: c.status(pod),
					Info: details(request.GetVerbose(), pod.ID, c.PID)}, nil
			}
		}
	}
	return nil, status.Errorf(codes.NotFound, "an error occurred when try to find container %q: not found",
		request.GetContainerId())
}

// details returns the fields of containerd's details that swdt uses.
func details(wanted bool, sandbox string, pid uint32) map[string]string {
	if !wanted || pid == 0 {
		return nil
	}
	text, err := json.Marshal(struct {
		Sandbox string `json:"sandboxID,omitempty"`
		PID     uint32 `json:"pid"`
	}{sandbox, pid})
	if err != nil { // never happens: a text and a number can always be encoded
		return nil
	}
	return map[string]string{"info": string(text)}
}

func (c Container) status(pod Pod) *runtimev1.ContainerStatus {
	return &runtimev1.ContainerStatus{
		Id: c.ID, Metadata: &runtimev1.ContainerMetadata{Name: c.Name}, Labels: pod.labels(c.Name),
		State: runtimev1.ContainerState_CONTAINER_RUNNING, CreatedAt: pod.Created.UnixNano(),
		StartedAt: pod.Created.UnixNano(),
		Image:     &runtimev1.ImageSpec{Image: c.Image}, ImageRef: c.Image,
		Resources: &runtimev1.ContainerResources{Windows: &runtimev1.WindowsContainerResources{CpuMaximum: c.Maximum}},
	}
}
