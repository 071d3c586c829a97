package hcs

import (
	"context"
	"fmt"
	"strings"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Owner is a pod, or one of its containers, as the container runtime tells.
type Owner struct {
	ID        string `json:"id"` // the runtime's
	Pod       string `json:"pod"`
	Container string `json:"container,omitempty"` // empty: the pod's sandbox
	Running   bool   `json:"running"`
}

// String is NAMESPACE/POD or NAMESPACE/POD/CONTAINER.
func (o Owner) String() string {
	if o.Container == "" {
		return o.Pod
	}
	return o.Pod + "/" + o.Container
}

// Owners asks a node's container runtime for its pods and containers.
func Owners(ctx context.Context, runtime runtimev1.RuntimeServiceClient) ([]Owner, error) {
	pods, err := runtime.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask the container runtime for its pods: %w", err)
	}
	containers, err := runtime.ListContainers(ctx, &runtimev1.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask the container runtime for its containers: %w", err)
	}
	var owners []Owner
	podOf := map[string]string{}
	for _, p := range pods.GetItems() {
		podOf[p.GetId()] = p.GetMetadata().GetNamespace() + "/" + p.GetMetadata().GetName()
		owners = append(owners, Owner{
			ID: p.GetId(), Pod: podOf[p.GetId()], Running: p.GetState() == runtimev1.PodSandboxState_SANDBOX_READY,
		})
	}
	for _, c := range containers.GetContainers() {
		owners = append(owners, Owner{
			ID: c.GetId(), Pod: podOf[c.GetPodSandboxId()], Container: c.GetMetadata().GetName(),
			Running: c.GetState() == runtimev1.ContainerState_CONTAINER_RUNNING,
		})
	}
	return owners, nil
}

// vmSuffix is what runhcs adds to a sandbox's ID for the utility VM of its pod.
const vmSuffix = "@vm"

// OwnerOf is whose a compute system is.
func OwnerOf(owners []Owner, system System) (Owner, bool) {
	id := strings.TrimSuffix(system.ID, vmSuffix)
	for _, o := range owners {
		if strings.EqualFold(o.ID, id) {
			return o, true
		}
	}
	return Owner{}, false
}
