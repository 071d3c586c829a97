//go:build windows

package main

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/containerd/containerd/api/events"
	task "github.com/containerd/containerd/api/runtime/task/v2"
	tasktypes "github.com/containerd/containerd/api/types/task"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const shutdownLimit = 5 * time.Second

// service is the task service of one shim. containerd 1 starts a shim for each
// container, containerd 2 one shim for a pod and all its containers.
type service struct {
	events *publisher
	end    context.CancelFunc

	mu         sync.Mutex
	containers map[string]*container
}

func (s *service) container(id string) (*container, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.containers[id]
	if found == nil {
		return nil, status.Errorf(codes.NotFound, "there is no container %s here", id)
	}
	return found, nil
}

func (s *service) process(id, execID string) (*container, *process, error) {
	c, err := s.container(id)
	if err != nil {
		return nil, nil, err
	}
	p, err := c.process(execID)
	return c, p, err
}

func (s *service) Create(_ context.Context, r *task.CreateTaskRequest) (*task.CreateTaskResponse, error) {
	hang(hungCreate)
	c, err := newContainer(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.containers[r.ID] != nil {
		c.close()
		return nil, status.Errorf(codes.AlreadyExists, "there is a container %s", r.ID)
	}
	s.containers[r.ID] = c
	s.events.send("/tasks/create", &events.TaskCreate{
		ContainerID: r.ID, Bundle: r.Bundle, Rootfs: r.Rootfs,
		IO: &events.TaskIO{Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr, Terminal: r.Terminal},
	})
	return &task.CreateTaskResponse{}, nil // the container's process starts with Start
}

func (s *service) Start(_ context.Context, r *task.StartRequest) (*task.StartResponse, error) {
	hang(hungStart)
	c, p, err := s.process(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	if err := p.start(c); err != nil {
		return nil, status.Errorf(codes.Unknown, "start a process of container %s: %v", r.ID, err)
	}
	if r.ExecID == "" {
		s.events.send("/tasks/start", &events.TaskStart{ContainerID: r.ID, Pid: p.pid})
	} else {
		s.events.send("/tasks/exec-started", &events.TaskExecStarted{ContainerID: r.ID, ExecID: r.ExecID, Pid: p.pid})
	}
	go s.awaitExit(c, p)
	return &task.StartResponse{Pid: p.pid}, nil
}

// awaitExit waits for the end of a process and publishes it. If the process is the container's
// own, awaitExit first ends all other processes of the container.
func (s *service) awaitExit(c *container, p *process) {
	<-p.ended
	id := p.execID
	if id == "" {
		id = c.id
		c.kill(killed)
	}
	s.events.send("/tasks/exit", &events.TaskExit{
		ContainerID: c.id, ID: id, Pid: p.pid, ExitStatus: p.exitStatus, ExitedAt: timestamppb.New(p.exitedAt),
	})
}

func (s *service) Delete(_ context.Context, r *task.DeleteRequest) (*task.DeleteResponse, error) {
	hang(hungDelete)
	c, p, err := s.process(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	current := p.now()
	if current.status == tasktypes.Status_RUNNING {
		return nil, status.Errorf(codes.FailedPrecondition, "process %d of container %s runs", p.pid, r.ID)
	}
	if r.ExecID != "" {
		c.remove(r.ExecID)
		return &task.DeleteResponse{Pid: current.pid, ExitStatus: current.exitStatus, ExitedAt: current.exitedAt}, nil
	}
	s.mu.Lock()
	delete(s.containers, r.ID)
	s.mu.Unlock()
	c.close()
	s.events.send("/tasks/delete", &events.TaskDelete{
		ContainerID: r.ID, Pid: current.pid, ExitStatus: current.exitStatus, ExitedAt: current.exitedAt,
	})
	return &task.DeleteResponse{Pid: current.pid, ExitStatus: current.exitStatus, ExitedAt: current.exitedAt}, nil
}

func (s *service) State(_ context.Context, r *task.StateRequest) (*task.StateResponse, error) {
	c, p, err := s.process(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	current := p.now()
	return &task.StateResponse{
		ID: r.ID, ExecID: r.ExecID, Bundle: c.bundle, Pid: current.pid, Status: current.status,
		Stdin: p.streams.stdin, Stdout: p.streams.stdout, Stderr: p.streams.stderr,
		ExitStatus: current.exitStatus, ExitedAt: current.exitedAt,
	}, nil
}

func (s *service) Wait(ctx context.Context, r *task.WaitRequest) (*task.WaitResponse, error) {
	_, p, err := s.process(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.ended:
		return &task.WaitResponse{ExitStatus: p.exitStatus, ExitedAt: timestamppb.New(p.exitedAt)}, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// Kill ends processes at once, whatever the signal: Wine has no softer way.
func (s *service) Kill(_ context.Context, r *task.KillRequest) (*emptypb.Empty, error) {
	hang(hungKill)
	c, p, err := s.process(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	if p.now().status != tasktypes.Status_RUNNING {
		return nil, status.Errorf(codes.NotFound, "the process of container %s has ended", r.ID)
	}
	const afterSignal = 128 // the shells' convention
	if r.ExecID == "" {
		c.kill(afterSignal + r.Signal)
	} else if err := p.kill(afterSignal + r.Signal); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

func (s *service) Exec(_ context.Context, r *task.ExecProcessRequest) (*emptypb.Empty, error) {
	c, err := s.container(r.ID)
	if err != nil {
		return nil, err
	}
	if err := c.add(r); err != nil {
		return nil, err
	}
	s.events.send("/tasks/exec-added", &events.TaskExecAdded{ContainerID: r.ID, ExecID: r.ExecID})
	return &emptypb.Empty{}, nil
}

func (s *service) CloseIO(_ context.Context, r *task.CloseIORequest) (*emptypb.Empty, error) {
	_, p, err := s.process(r.ID, r.ExecID)
	if err != nil {
		return nil, err
	}
	if r.Stdin {
		p.closeStdin()
	}
	return &emptypb.Empty{}, nil
}

// Pids always returns at least one process: when containerd starts again, it removes a shim
// without processes as a leftover.
func (s *service) Pids(_ context.Context, r *task.PidsRequest) (*task.PidsResponse, error) {
	c, err := s.container(r.ID)
	if err != nil {
		return nil, err
	}
	pids, err := c.job.pids()
	if err != nil {
		return nil, err
	}
	if len(pids) == 0 {
		pids = []uint32{uint32(os.Getpid())}
	}
	answer := &task.PidsResponse{}
	for _, pid := range pids {
		answer.Processes = append(answer.Processes, &tasktypes.ProcessInfo{Pid: pid})
	}
	return answer, nil
}

func (s *service) Stats(_ context.Context, r *task.StatsRequest) (*task.StatsResponse, error) {
	c, err := s.container(r.ID)
	if err != nil {
		return nil, err
	}
	used, err := c.job.usage()
	if err != nil {
		return nil, err
	}
	return &task.StatsResponse{Stats: statistics(used, c.created, time.Now())}, nil
}

func (s *service) Connect(_ context.Context, r *task.ConnectRequest) (*task.ConnectResponse, error) {
	answer := &task.ConnectResponse{ShimPid: uint32(os.Getpid())}
	// containerd 2 connects to a pod's shim before it makes the container.
	if _, p, err := s.process(r.ID, ""); err == nil {
		answer.TaskPid = p.now().pid
	}
	return answer, nil
}

// Shutdown ends the shim if it has no containers left.
func (s *service) Shutdown(context.Context, *task.ShutdownRequest) (*emptypb.Empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.containers) == 0 {
		s.end()
	}
	return &emptypb.Empty{}, nil
}

func (s *service) Update(context.Context, *task.UpdateTaskRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil // the limits of a container are those of its start
}

// ResizePty does nothing, since no process has a terminal.
func (s *service) ResizePty(context.Context, *task.ResizePtyRequest) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (s *service) Pause(context.Context, *task.PauseRequest) (*emptypb.Empty, error) {
	return nil, unimplemented("pausing")
}

func (s *service) Resume(context.Context, *task.ResumeRequest) (*emptypb.Empty, error) {
	return nil, unimplemented("pausing")
}

func (s *service) Checkpoint(context.Context, *task.CheckpointTaskRequest) (*emptypb.Empty, error) {
	return nil, unimplemented("checkpoints")
}

func unimplemented(what string) error {
	return status.Errorf(codes.Unimplemented, "the lab's containers have no %s", what)
}
