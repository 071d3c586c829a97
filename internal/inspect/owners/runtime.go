package owners

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/node/criclient"
	"github.com/swdt-dev/swdt/internal/node/criproxy"
)

// maxCalls is the maximum number of simultaneous calls to the runtime.
const maxCalls = 8

// runtimeAnswer is the answer of the container runtime.
type runtimeAnswer struct {
	pods       []*runtimev1.PodSandbox
	containers []*runtimev1.Container
	pids       map[string]uint32 // the first process of each running container or pod sandbox
	images     map[string]string // names of images, by ID
	err        error             // why the runtime did not answer; nil: it answered
}

// askRuntime lists all pods and containers. For each running pod and container, it also
// gets the process ID of the first process, which only the verbose status contains.
func askRuntime(ctx context.Context, n criproxy.Node, pipe string) (answer runtimeAnswer, err error) {
	client, err := criclient.Open(ctx, n, pipe, criclient.Options{Limit: criclient.AnswerLimit})
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	containers, err := client.Runtime.ListContainers(ctx, &runtimev1.ListContainersRequest{})
	if err != nil {
		return answer, err
	}
	// The pods are listed after the containers, so that the list has the pod of each
	// container.
	pods, err := client.Runtime.ListPodSandbox(ctx, &runtimev1.ListPodSandboxRequest{})
	if err != nil {
		return answer, err
	}
	images, err := client.ImageNames(ctx)
	if err != nil {
		return answer, err
	}
	answer = runtimeAnswer{
		pods: pods.GetItems(), containers: containers.GetContainers(), pids: map[string]uint32{}, images: images,
	}
	var mutex sync.Mutex
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(maxCalls)
	ask := func(id string, info func() (map[string]string, error)) {
		work.Go(func() error {
			details, err := info()
			if status.Code(err) == codes.NotFound { // the pod or container was removed after it was listed
				return nil
			}
			mutex.Lock()
			defer mutex.Unlock()
			answer.pids[id] = pidOf(details)
			return err
		})
	}
	for _, pod := range answer.pods {
		if pod.GetState() == runtimev1.PodSandboxState_SANDBOX_READY {
			ask(pod.GetId(), func() (map[string]string, error) {
				reply, err := client.Runtime.PodSandboxStatus(ctx,
					&runtimev1.PodSandboxStatusRequest{PodSandboxId: pod.GetId(), Verbose: true})
				return reply.GetInfo(), err
			})
		}
	}
	for _, c := range answer.containers {
		if c.GetState() == runtimev1.ContainerState_CONTAINER_RUNNING {
			ask(c.GetId(), func() (map[string]string, error) {
				reply, err := client.Runtime.ContainerStatus(ctx,
					&runtimev1.ContainerStatusRequest{ContainerId: c.GetId(), Verbose: true})
				return reply.GetInfo(), err
			})
		}
	}
	return answer, work.Wait()
}

// pidOf reads the process ID from containerd's verbose status. The format of this status is meant
// for people and not guaranteed: pidOf returns 0 if it finds no process ID.
func pidOf(info map[string]string) uint32 {
	var described struct {
		PID uint32 `json:"pid"`
	}
	if json.Unmarshal([]byte(info["info"]), &described) != nil {
		return 0
	}
	return described.PID
}

func podState(pod *runtimev1.PodSandbox) string {
	return strings.ToLower(strings.TrimPrefix(pod.GetState().String(), "SANDBOX_"))
}

func containerState(c *runtimev1.Container) string {
	return strings.ToLower(strings.TrimPrefix(c.GetState().String(), "CONTAINER_"))
}

// moment converts a time of the runtime, in nanoseconds.
func moment(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at).UTC()
}

// momentIfKnown is like moment, but returns nil if the runtime reports no time.
func momentIfKnown(at int64) *time.Time {
	if at == 0 {
		return nil
	}
	return new(moment(at))
}
