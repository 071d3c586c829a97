package hcs

import (
	"context"
	"fmt"
	"strings"

	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Owner is a pod, or one of its containers, as the container runtime reports it.
type Owner struct {
	ID        string `json:"id"` // the ID that the container runtime uses
	Pod       string `json:"pod"`
	Container string `json:"container,omitempty"` // empty for the pod sandbox
	Running   bool   `json:"running"`
}

// String returns NAMESPACE/POD or NAMESPACE/POD/CONTAINER.
func (o Owner) String() string {
	if o.Container == "" {
		return o.Pod
	}
	return o.Pod + "/" + o.Container
}

// Owners returns the pods and containers of a node's container runtime.
func Owners(ctx context.Context, runtime runtimev1.RuntimeServiceClient) ([]Owner, error) {
	pods, err := runtime.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("list the container runtime's pods: %w", err)
	}
	containers, err := runtime.ListContainers(ctx, &runtimev1.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("list the container runtime's containers: %w", err)
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

// vmSuffix is the suffix that runhcs appends to a pod sandbox's ID for the utility VM of the
// pod.
const vmSuffix = "@vm"

// OwnerOf returns the owner of a compute system, and whether there is one.
func OwnerOf(owners []Owner, system System) (Owner, bool) {
	id := strings.TrimSuffix(system.ID, vmSuffix)
	for _, o := range owners {
		if strings.EqualFold(o.ID, id) {
			return o, true
		}
	}
	return Owner{}, false
}
