package agent

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent/internal/messages"
	"github.com/swdt-dev/swdt/internal/platform"
)

// killWait limits how long a killed process may take to end.
const killWait = 10 * time.Second

type processesService struct {
	agentv1.UnimplementedProcessesServer
	*session
}

func (s *processesService) List(ctx context.Context, _ *agentv1.ListProcessesRequest) (
	*agentv1.ListProcessesReply, error) {
	// taken is close to the time of the counters: Processes.List reads the counters of all
	// processes first, at once, and then queries each process, which takes longer.
	taken := time.Now()
	processes, err := s.platform.Processes.List(ctx)
	if err != nil {
		return nil, err
	}
	reply := &agentv1.ListProcessesReply{Taken: messages.Timestamp(taken)}
	for _, p := range processes {
		reply.Processes = append(reply.Processes, &agentv1.Process{
			Pid: p.PID, ParentPid: p.ParentPID, Name: p.Name, Image: p.Image,
			Started: messages.Timestamp(p.Started), Cpu: durationpb.New(p.CPU), MemoryBytes: p.Memory,
			Handles: p.Handles, Threads: p.Threads, Session: p.Session, CommandLine: p.CommandLine,
		})
	}
	return reply, nil
}

// Environment returns no variable that the request does not name, since variables may be secret.
func (s *processesService) Environment(ctx context.Context, request *agentv1.ProcessEnvironmentRequest) (
	*agentv1.ProcessEnvironmentReply, error) {
	all, err := s.platform.Processes.Environment(ctx, request.GetPid())
	if err != nil {
		return nil, err
	}
	reply := &agentv1.ProcessEnvironmentReply{}
	for _, pair := range all {
		name, value, _ := strings.Cut(pair, "=")
		if slices.ContainsFunc(request.GetNames(), func(n string) bool { return strings.EqualFold(n, name) }) {
			reply.Variables = append(reply.Variables, &agentv1.EnvironmentVariable{Name: name, Value: value})
		}
	}
	return reply, nil
}

func (s *processesService) Kill(ctx context.Context, request *agentv1.KillProcessRequest) (
	*agentv1.KillProcessReply, error) {
	bounded, cancel := context.WithTimeout(ctx, killWait)
	defer cancel()
	if err := s.kill(bounded, request.GetPid()); err != nil {
		return nil, fmt.Errorf("kill process %d: %w", request.GetPid(), err)
	}
	return &agentv1.KillProcessReply{}, nil
}

func (s *session) kill(ctx context.Context, pid uint32) error {
	process, err := s.platform.Processes.Open(pid)
	if err != nil {
		return err
	}
	defer process.Close()
	if err := process.Kill(); err != nil {
		return err
	}
	return process.Wait(ctx)
}

type runStream = grpc.BidiStreamingServer[agentv1.RunRequest, agentv1.RunReply]

// Run runs a command. It uses the call's flow control for the pipes: if the client does not read, the command blocks
// at its next write, and if the command does not read stdin, the client blocks.
func (s *processesService) Run(stream runStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	command := first.GetCommand()
	if command.GetPath() == "" {
		return status.Error(codes.InvalidArgument, "run a command: the first message has no command")
	}
	terminal, resize, err := newTerminal(command.GetTerminal())
	if err != nil {
		return err
	}
	stdin, feed := io.Pipe()
	defer stdin.Close() // also ends feedStdin if its write to the pipe is blocked
	go feedStdin(stream, first, feed, resize)

	out := &output{stream: stream}
	code, err := s.platform.Processes.Run(stream.Context(), platform.Command{
		Terminal:    terminal,
		Path:        command.GetPath(),
		Args:        command.GetArgs(),
		Folder:      command.GetFolder(),
		Environment: command.GetEnvironment(),
		Stdin:       stdin,
		Stdout:      outputWriter{out, stdoutReply},
		Stderr:      outputWriter{out, stderrReply},
	})
	if err != nil {
		return fmt.Errorf("run %s: %w", command.GetPath(), err)
	}
	return out.send(&agentv1.RunReply{Exited: true, ExitCode: int32(code)})
}

// feedStdin passes on the client's bytes until the client ends its input, the client closes its side, or the command
// ends. It passes each size of the client's terminal to resize.
func feedStdin(stream runStream, request *agentv1.RunRequest, stdin *io.PipeWriter,
	resize func(*agentv1.TerminalSize)) {
	for {
		if size := request.GetResize(); size != nil {
			resize(size)
		}
		if len(request.GetStdin()) > 0 {
			if _, err := stdin.Write(request.GetStdin()); err != nil {
				return
			}
		}
		if request.GetStdinClosed() {
			stdin.Close()
			return
		}
		var err error
		if request, err = stream.Recv(); err != nil {
			stdin.CloseWithError(err) // io.EOF: the client closed its side
			return
		}
	}
}

// output sends the command's output. Its lock is needed because a stream allows only one Send at a time.
type output struct {
	mu     sync.Mutex
	stream runStream
}

func (o *output) send(reply *agentv1.RunReply) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stream.Send(reply)
}

// outputWriter is the command's stdout or stderr.
type outputWriter struct {
	*output
	reply func(data []byte) *agentv1.RunReply
}

func stdoutReply(data []byte) *agentv1.RunReply { return &agentv1.RunReply{Stdout: data} }
func stderrReply(data []byte) *agentv1.RunReply { return &agentv1.RunReply{Stderr: data} }

func (w outputWriter) Write(p []byte) (n int, err error) {
	for part := range slices.Chunk(p, readChunk) {
		if err := w.send(w.reply(part)); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}
