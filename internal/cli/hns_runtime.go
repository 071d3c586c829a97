package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/criclient"
	"github.com/swdt-dev/swdt/internal/criproxy"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/ui"
)

// withRuntime does something with the node's container runtime.
func withRuntime(ctx context.Context, n *node.Node, doc config.Document, r ui.Reporter, do func(runtimev1.RuntimeServiceClient) error) (err error) {
	keeper := &criproxy.Keeper{Node: n, Pipe: doc.RuntimePipe(), Reporter: r}
	client, err := criclient.New(ctx, keeper.Dial)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return do(patientRuntime{client.Runtime})
}

// runtimePatience is how long a runtime may take to say whose something is: a node
// is looked at because its runtime hangs, too.
const runtimePatience = 10 * time.Second

// silentError: the runtime did not answer.
type silentError struct{}

func (silentError) Error() string {
	return fmt.Sprintf("the container runtime does not answer within %s", runtimePatience)
}

// patientRuntime gives up on a question to which there is no answer. What is run in
// a container takes as long as it takes.
type patientRuntime struct{ runtimev1.RuntimeServiceClient }

func (p patientRuntime) ListPodSandbox(ctx context.Context, q *runtimev1.ListPodSandboxRequest, o ...grpc.CallOption) (*runtimev1.ListPodSandboxResponse, error) {
	return patiently(ctx, p.RuntimeServiceClient.ListPodSandbox, q, o)
}

func (p patientRuntime) ListContainers(ctx context.Context, q *runtimev1.ListContainersRequest, o ...grpc.CallOption) (*runtimev1.ListContainersResponse, error) {
	return patiently(ctx, p.RuntimeServiceClient.ListContainers, q, o)
}

func (p patientRuntime) PodSandboxStatus(ctx context.Context, q *runtimev1.PodSandboxStatusRequest, o ...grpc.CallOption) (*runtimev1.PodSandboxStatusResponse, error) {
	return patiently(ctx, p.RuntimeServiceClient.PodSandboxStatus, q, o)
}

func patiently[Q, A any](ctx context.Context, ask func(context.Context, Q, ...grpc.CallOption) (A, error), q Q, o []grpc.CallOption) (A, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, runtimePatience, silentError{})
	defer cancel()
	answer, err := ask(ctx, q, o...)
	if err != nil && errors.Is(context.Cause(ctx), silentError{}) {
		err = silentError{}
	}
	return answer, err
}
