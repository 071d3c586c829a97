package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/hcs"
	"github.com/swdt-dev/swdt/internal/hns"
)

// hanging is a runtime that takes its time for each answer.
type hanging struct {
	runtimev1.RuntimeServiceClient
	takes time.Duration
}

func (h hanging) ListPodSandbox(ctx context.Context, _ *runtimev1.ListPodSandboxRequest, _ ...grpc.CallOption) (*runtimev1.ListPodSandboxResponse, error) {
	return &runtimev1.ListPodSandboxResponse{Items: []*runtimev1.PodSandbox{{Id: "a"}, {Id: "b"}}}, h.pass(ctx)
}

func (h hanging) ListContainers(ctx context.Context, _ *runtimev1.ListContainersRequest, _ ...grpc.CallOption) (*runtimev1.ListContainersResponse, error) {
	return &runtimev1.ListContainersResponse{}, h.pass(ctx)
}

func (h hanging) PodSandboxStatus(ctx context.Context, _ *runtimev1.PodSandboxStatusRequest, _ ...grpc.CallOption) (*runtimev1.PodSandboxStatusResponse, error) {
	return &runtimev1.PodSandboxStatusResponse{}, h.pass(ctx)
}

func (h hanging) pass(ctx context.Context) error {
	select {
	case <-time.After(h.takes):
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// Whoever looks at a node does not wait for a runtime that hangs, but for one that
// is slow.
func TestARuntimeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for takes, hangs := range map[time.Duration]bool{runtimePatience - time.Second: false, time.Hour: true} {
			runtime := patientRuntime{hanging{takes: takes}}
			began := time.Now()
			_, ofPods := hns.Pods(t.Context(), runtime)
			_, ofOwners := hcs.Owners(t.Context(), runtime)
			for _, err := range []error{ofPods, ofOwners} {
				if errors.Is(err, silentError{}) != hangs || (err != nil) != hangs {
					t.Errorf("answers that take %s: %v", takes, err)
				}
			}
			if hangs && time.Since(began) > 2*runtimePatience {
				t.Errorf("waited for %s", time.Since(began))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := hns.Pods(ctx, patientRuntime{hanging{takes: time.Hour}}); err == nil || errors.Is(err, silentError{}) {
			t.Errorf("called off: %v", err)
		}
	})
}
