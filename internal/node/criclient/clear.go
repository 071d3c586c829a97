package criclient

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Cleared has the numbers of pods and images that Clear has removed.
type Cleared struct{ Pods, Images int }

// Clear makes the runtime remove all pods with their containers, and all images with their layers.
// On Windows only the runtime can remove layers. If the runtime cannot remove a pod or an image,
// Clear continues with the next one; the error lists all pods and images that remain.
func (c *Client) Clear(ctx context.Context) (Cleared, error) {
	var done Cleared
	pods, err := c.Runtime.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{})
	if err != nil {
		return done, failed(err, "its pods")
	}
	var kept []error
	for _, pod := range pods.GetItems() {
		if err := c.removePod(ctx, pod.GetId()); err != nil {
			kept = append(kept, fmt.Errorf("remove the pod %s/%s: %w", pod.GetMetadata().GetNamespace(),
				pod.GetMetadata().GetName(), err))
			continue
		}
		done.Pods++
	}
	images, err := c.Images.ListImages(ctx, &runtimev1.ListImagesRequest{})
	if err != nil {
		return done, errors.Join(append(kept, failed(err, "its images"))...)
	}
	for _, image := range images.GetImages() {
		// Removing an image by its ID removes all of its names too.
		request := &runtimev1.RemoveImageRequest{Image: &runtimev1.ImageSpec{Image: image.GetId()}}
		if _, err := c.Images.RemoveImage(ctx, request); err != nil {
			kept = append(kept, fmt.Errorf("remove the image %s: %w", image.GetId(), err))
			continue
		}
		done.Images++
	}
	return done, errors.Join(kept...)
}

// removePod stops a pod, which also removes its network, and then removes the pod. For a pod that is gone, containerd
// before 1.7.21 answers a stop with NotFound (pkg/cri/server/sandbox_stop.go), and a removal with success.
func (c *Client) removePod(ctx context.Context, id string) error {
	_, err := c.Runtime.StopPodSandbox(ctx, &runtimev1.StopPodSandboxRequest{PodSandboxId: id})
	if err != nil && status.Code(err) != codes.NotFound {
		return err
	}
	_, err = c.Runtime.RemovePodSandbox(ctx, &runtimev1.RemovePodSandboxRequest{PodSandboxId: id})
	return err
}
