package criserver

import (
	"context"
	"encoding/json"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// PodSandboxStatus returns a pod's address, and its network namespace if the
// caller requests details, as containerd does.
func (s *runtimeService) PodSandboxStatus(_ context.Context, request *runtimev1.PodSandboxStatusRequest) (
	*runtimev1.PodSandboxStatusResponse, error) {
	for _, pod := range s.pods() {
		if pod.ID != request.GetPodSandboxId() {
			continue
		}
		sandbox := s.sandbox(pod)
		reply := &runtimev1.PodSandboxStatusResponse{Status: &runtimev1.PodSandboxStatus{
			Id: pod.ID, Metadata: sandbox.Metadata, State: sandbox.State, CreatedAt: sandbox.CreatedAt,
			Labels:  sandbox.Labels,
			Network: &runtimev1.PodSandboxNetworkStatus{Ip: pod.IP}, RuntimeHandler: sandbox.RuntimeHandler,
		}}
		if request.GetVerbose() {
			info, err := json.Marshal(pod.info())
			if err != nil {
				return nil, err
			}
			reply.Info = map[string]string{"info": string(info)}
		}
		return reply, nil
	}
	return nil, status.Error(codes.NotFound, "an error occurred when try to find sandbox: not found")
}

// info returns the part of containerd's own description that swdt reads.
func (p Pod) info() any {
	network := map[string]any{}
	if p.NetworkNamespace != "" {
		network["networkNamespace"] = p.NetworkNamespace
	}
	return map[string]any{
		"pid": p.PID, "runtimeHandler": "runhcs-wcow-process",
		"runtimeSpec": map[string]any{"windows": map[string]any{"network": network}},
	}
}

// sandbox returns a pod with a state that reflects whether it was ended on the
// machine.
func (s *runtimeService) sandbox(pod Pod) *runtimev1.PodSandbox {
	sandbox := pod.sandbox()
	if s.ended(pod.ID) {
		sandbox.State = runtimev1.PodSandboxState_SANDBOX_NOTREADY
	}
	return sandbox
}

// ended reports whether a container or pod sandbox was ended on the machine.
func (s *runtimeService) ended(id string) bool { return s.Ended != nil && s.Ended(id) }
