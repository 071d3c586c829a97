package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/criclient"
)

// asking is how many questions are under way at a time.
const asking = 8

// dialer reaches a named pipe of the node.
type dialer interface {
	DialPipe(ctx context.Context, path string) (net.Conn, error)
}

// runtimeAnswer is what the container runtime says.
type runtimeAnswer struct {
	pods       []*runtimev1.PodSandbox
	containers []*runtimev1.Container
	pids       map[string]uint32 // of what runs: the first process of a container or sandbox
	images     map[string]string // what images are called, by ID
	err        error             // it did not answer
}

// askRuntime asks for all pods and containers, and for the process of each that
// runs, which the runtime tells those who want details.
func askRuntime(ctx context.Context, n dialer, pipe string) (answer runtimeAnswer, err error) {
	client, err := criclient.New(ctx, func(ctx context.Context) (net.Conn, error) { return n.DialPipe(ctx, pipe) })
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	containers, err := client.Runtime.ListContainers(ctx, &runtimev1.ListContainersRequest{})
	if err != nil {
		return answer, err
	}
	// Asked for last, so that the pod of each container is among them.
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
	work.SetLimit(asking)
	ask := func(id string, info func() (map[string]string, error)) {
		work.Go(func() error {
			told, err := info()
			if status.Code(err) == codes.NotFound { // it went away meanwhile
				return nil
			}
			mutex.Lock()
			defer mutex.Unlock()
			answer.pids[id] = pidOf(told)
			return err
		})
	}
	for _, pod := range answer.pods {
		if pod.GetState() == runtimev1.PodSandboxState_SANDBOX_READY {
			ask(pod.GetId(), func() (map[string]string, error) {
				reply, err := client.Runtime.PodSandboxStatus(ctx, &runtimev1.PodSandboxStatusRequest{PodSandboxId: pod.GetId(), Verbose: true})
				return reply.GetInfo(), err
			})
		}
	}
	for _, c := range answer.containers {
		if c.GetState() == runtimev1.ContainerState_CONTAINER_RUNNING {
			ask(c.GetId(), func() (map[string]string, error) {
				reply, err := client.Runtime.ContainerStatus(ctx, &runtimev1.ContainerStatusRequest{ContainerId: c.GetId(), Verbose: true})
				return reply.GetInfo(), err
			})
		}
	}
	return answer, work.Wait()
}

// pidOf reads containerd's description, which is for people and not promised: what
// is not there, or not in this form, is not known.
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

// moment is a time of the runtime, in nanoseconds.
func moment(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, at).UTC()
}
