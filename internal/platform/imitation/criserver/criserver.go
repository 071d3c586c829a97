// Package criserver is a container runtime that serves the Container Runtime Interface (runtime.v1) as containerd
// does on Windows. Its pods only use CPU time. The simulated Windows serves it on containerd's pipe.
//
// Its messages and answers are those of containerd 1.7.12 and 2.4.2, internal/cri/server (pkg/cri/server before 2.0):
// version.go, status.go, sandbox_list.go, sandbox_status.go, sandbox_stop.go, container_status.go, container_execsync.go,
// container_events.go, container_stats_list.go (container_stats_list_windows.go before 2.0), sandbox_stats_windows.go,
// image_status.go, imagefs_info.go and image_pull.go. Errors of a registry are shortened. A process that the Host Compute
// Service cannot start has the text of hcsshim's internal/hcs/errors.go. The contract of the real containerd under Wine
// (e2e) has the same calls.
package criserver

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/version"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Options configure the runtime.
type Options struct {
	Version string // such as v1.7.12
	// Unhealthy makes every call return Unavailable.
	Unhealthy bool
	// NetworkReady reports whether there is a pod network; nil: there is one.
	NetworkReady func() bool
	Workload     Workload
	// Ended reports whether a container or pod sandbox was ended on the machine by another program than the runtime;
	// nil: none was ended.
	Ended func(id string) bool
	// Removed records the pods and images that were removed; nil: the record ends with the server.
	Removed *Removed
	// Pulled has the images that were pulled; nil: the images are gone when the server ends.
	Pulled *Pulled
	// Offline means that no registry can be reached.
	Offline bool
}

// NewServer returns a server of the runtime; the caller serves it.
func NewServer(o Options) *grpc.Server {
	if o.Removed == nil {
		o.Removed = &Removed{}
	}
	if o.Pulled == nil {
		o.Pulled = &Pulled{}
	}
	refuse := func() error {
		if o.Unhealthy {
			return status.Error(codes.Unavailable, "server is not initialized yet")
		}
		return nil
	}
	server := grpc.NewServer(
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo,
			handle grpc.UnaryHandler) (any, error) {
			if err := refuse(); err != nil {
				return nil, err
			}
			return handle(ctx, request)
		}),
		grpc.StreamInterceptor(func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo,
			handle grpc.StreamHandler) error {
			if err := refuse(); err != nil {
				return err
			}
			return handle(service, stream)
		}),
	)
	runtimev1.RegisterRuntimeServiceServer(server, &runtimeService{Options: o, rates: newRates(o.Version)})
	runtimev1.RegisterImageServiceServer(server, &imageService{
		workload: o.Workload, removed: o.Removed, pulled: o.Pulled, offline: o.Offline,
	})
	return server
}

type runtimeService struct {
	runtimev1.UnimplementedRuntimeServiceServer
	Options
	rates *rates
}

func (s *runtimeService) Version(context.Context, *runtimev1.VersionRequest) (*runtimev1.VersionResponse, error) {
	return &runtimev1.VersionResponse{
		Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: s.Options.Version, RuntimeApiVersion: "v1",
	}, nil
}

// isAtLeast reports whether the runtime has this version or a newer one.
func (s *runtimeService) isAtLeast(wanted string) bool {
	is, err := version.ParseGeneric(s.Options.Version)
	return err == nil && is.AtLeast(version.MustParseGeneric(wanted))
}

// Status reports a missing pod network as containerd does, and, since 1.7.14, whether its configuration is outdated.
func (s *runtimeService) Status(_ context.Context, request *runtimev1.StatusRequest) (
	*runtimev1.StatusResponse, error) {
	network := &runtimev1.RuntimeCondition{Type: runtimev1.NetworkReady, Status: true}
	if s.NetworkReady != nil && !s.NetworkReady() {
		network = &runtimev1.RuntimeCondition{
			Type: runtimev1.NetworkReady, Reason: "NetworkPluginNotReady",
			Message: "Network plugin returns error: cni plugin not initialized",
		}
	}
	reply := &runtimev1.StatusResponse{Status: &runtimev1.RuntimeStatus{Conditions: []*runtimev1.RuntimeCondition{
		{Type: runtimev1.RuntimeReady, Status: true}, network,
	}}}
	if s.isAtLeast("1.7.14") {
		reply.Status.Conditions = append(reply.Status.Conditions, &runtimev1.RuntimeCondition{
			Type: "ContainerdHasNoDeprecationWarnings", Status: true})
	}
	if request.GetVerbose() {
		reply.Info = map[string]string{
			"config": `{"containerd":{"snapshotter":"windows","defaultRuntimeName":"runhcs-wcow-process"}}`,
			"golang": `"go1.20.13"`,
		}
	}
	return reply, nil
}

func (s *runtimeService) ListPodSandbox(_ context.Context, request *runtimev1.ListPodSandboxRequest) (
	*runtimev1.ListPodSandboxResponse, error) {
	reply := &runtimev1.ListPodSandboxResponse{}
	for _, pod := range s.pods() {
		if wanted := request.GetFilter().GetId(); wanted == "" || wanted == pod.ID {
			reply.Items = append(reply.Items, s.sandbox(pod))
		}
	}
	return reply, nil
}

func (s *runtimeService) ListContainers(context.Context, *runtimev1.ListContainersRequest) (
	*runtimev1.ListContainersResponse, error) {
	reply := &runtimev1.ListContainersResponse{}
	for _, pod := range s.pods() {
		for _, c := range pod.Containers {
			container := c.container(pod, s.Workload.Images)
			if s.ended(c.ID) || s.ended(pod.ID) {
				container.State = runtimev1.ContainerState_CONTAINER_EXITED
			}
			reply.Containers = append(reply.Containers, container)
		}
	}
	return reply, nil
}

func (s *runtimeService) ListContainerStats(context.Context, *runtimev1.ListContainerStatsRequest) (
	*runtimev1.ListContainerStatsResponse, error) {
	reply := &runtimev1.ListContainerStatsResponse{}
	now := time.Now()
	for _, pod := range s.pods() {
		for _, c := range pod.Containers {
			stats := c.stats(pod, now)
			stats.Cpu.UsageNanoCores = s.rates.of(c.ID, stats.Cpu.UsageCoreNanoSeconds.Value, now)
			reply.Stats = append(reply.Stats, stats)
		}
	}
	return reply, nil
}

func (s *runtimeService) ListPodSandboxStats(context.Context, *runtimev1.ListPodSandboxStatsRequest) (
	*runtimev1.ListPodSandboxStatsResponse, error) {
	reply := &runtimev1.ListPodSandboxStatsResponse{}
	now := time.Now()
	for _, pod := range s.pods() {
		reply.Stats = append(reply.Stats, pod.stats(now))
	}
	return reply, nil
}

// GetContainerEvents sends a start event for every container, and then nothing until the caller disconnects.
func (s *runtimeService) GetContainerEvents(_ *runtimev1.GetEventsRequest,
	stream grpc.ServerStreamingServer[runtimev1.ContainerEventResponse]) error {
	for _, pod := range s.pods() {
		for _, c := range pod.Containers {
			event := &runtimev1.ContainerEventResponse{
				ContainerId: c.ID, ContainerEventType: runtimev1.ContainerEventType_CONTAINER_STARTED_EVENT,
				CreatedAt: pod.Created.UnixNano(),
			}
			if err := stream.Send(event); err != nil {
				return err
			}
		}
	}
	<-stream.Context().Done()
	return status.FromContextError(stream.Context().Err()).Err()
}
