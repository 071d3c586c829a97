package agent

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/stackdump"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/shimdiag"
)

// shimLimit is how long a shim may take to answer.
const shimLimit = 8 * time.Second

// Stacks sends the goroutines of containerd, or of the shim that the request names.
func (s *processesService) Stacks(request *agentv1.StacksRequest, stream grpc.ServerStreamingServer[agentv1.StacksReply]) error {
	if request.GetId() == "" {
		return s.containerdStacks(request.GetPid(), stream)
	}
	text, err := s.shimStacks(stream.Context(), request)
	if err != nil {
		return fmt.Errorf("read the goroutines of shim %d: %w", request.GetPid(), err)
	}
	return stream.Send(&agentv1.StacksReply{Data: []byte(text)})
}

func (s *processesService) containerdStacks(pid uint32, stream grpc.ServerStreamingServer[agentv1.StacksReply]) error {
	facts, err := s.platform.Machine.Facts(stream.Context())
	if err != nil {
		return err
	}
	cut, err := stackdump.Read(stream.Context(), s.platform, pid, facts.Time, func(data []byte) error {
		return stream.Send(&agentv1.StacksReply{Data: data})
	})
	if err != nil {
		return fmt.Errorf("read the goroutines of containerd: %w", err)
	}
	if cut {
		return stream.Send(&agentv1.StacksReply{Cut: true})
	}
	return nil
}

// shimStacks asks the shim with this PID. Any process could serve a pipe of a shim's name: the pipe itself names its server.
func (s *processesService) shimStacks(ctx context.Context, request *agentv1.StacksRequest) (string, error) {
	path, ok := shimdiag.Pipe(request.GetNamespace(), request.GetId())
	if !ok {
		return "", fmt.Errorf("its namespace and ID are no part of a pipe's name: %w", fault.ErrNotExist)
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(caller, shimLimit)
	defer cancel()
	conn, err := s.platform.Network.DialPipe(ctx, path)
	if err != nil {
		return "", err
	}
	server, err := platform.PipeServer(conn)
	if err == nil && server != request.GetPid() {
		err = fmt.Errorf("process %d serves its pipe: %w", server, fault.ErrPermission)
	}
	if err != nil {
		conn.Close()
		return "", err
	}
	text, err := shimdiag.Stacks(ctx, conn)
	if err != nil && caller.Err() != nil {
		return "", caller.Err() // the shim has not had its time
	}
	return text, err
}
