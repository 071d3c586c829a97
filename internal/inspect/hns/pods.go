package hns

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Pods returns the pods of a node with their addresses, from the node's container runtime.
func Pods(ctx context.Context, runtime runtimev1.RuntimeServiceClient) ([]Pod, error) {
	list, err := runtime.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("list the container runtime's pods: %w", err)
	}
	var pods []Pod
	for _, sandbox := range list.GetItems() {
		reply, err := runtime.PodSandboxStatus(ctx, &runtimev1.PodSandboxStatusRequest{PodSandboxId: sandbox.GetId(),
			Verbose: true})
		if status.Code(err) == codes.NotFound { // the pod was removed after it was listed
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("get pod %s from the container runtime: %w", sandbox.GetId(), err)
		}
		pods = append(pods, pod(sandbox, reply))
	}
	return pods, nil
}

func pod(sandbox *runtimev1.PodSandbox, reply *runtimev1.PodSandboxStatusResponse) Pod {
	p := Pod{
		Namespace: sandbox.GetMetadata().GetNamespace(), Name: sandbox.GetMetadata().GetName(),
		Sandbox:          sandbox.GetId(),
		NetworkNamespace: networkNamespace(reply.GetInfo()["info"]),
	}
	network := reply.GetStatus().GetNetwork()
	if ip := network.GetIp(); ip != "" {
		p.IPs = append(p.IPs, ip)
	}
	for _, more := range network.GetAdditionalIps() {
		p.IPs = append(p.IPs, more.GetIp())
	}
	return p
}

// networkNamespace reads the ID of a pod's network namespace from containerd's verbose status of
// the pod sandbox. The format of this status is meant for people and not guaranteed. If
// networkNamespace returns "", PodOf finds the pod by its sandbox ID or its address.
func networkNamespace(info string) string {
	var described struct {
		RuntimeSpec struct {
			Windows struct {
				Network struct{ NetworkNamespace string }
			}
		}
	}
	if json.Unmarshal([]byte(info), &described) != nil {
		return ""
	}
	return described.RuntimeSpec.Windows.Network.NetworkNamespace
}
