package hcs

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/command"
)

// Way is how something in a container is reached.
type Way string

const (
	// ByRuntime has the container runtime run a command: streams apart, the real
	// exit code, the container's own user and environment, and HostProcess
	// containers too, which are no compute systems. No stdin, and at most 16 MB of
	// output, which comes at the end.
	ByRuntime Way = "cri"
	// ByTool has the node's own hcsdiag.exe do it, for compute systems that the
	// runtime does not know. Its exit code is what it makes of the command's.
	ByTool Way = "hcsdiag"
)

// Inside is a container that something is done in.
type Inside struct {
	ID        string // whole
	Way       Way
	Runtime   runtimev1.RuntimeServiceClient // of ByRuntime
	Processes agentv1.ProcessesClient        // of ByTool
}

// hcsdiag is Windows' own tool; the agent finds it on the PATH, in System32.
const hcsdiag = "hcsdiag.exe"

// Exec runs a command in the container and returns its exit code.
func (i Inside) Exec(ctx context.Context, args []string, s command.Streams) (int, error) {
	if i.Way == ByTool {
		return command.Run(ctx, i.Processes, &agentv1.RunCommand{Path: hcsdiag, Args: append([]string{"exec", i.ID}, args...)}, s)
	}
	reply, err := i.Runtime.ExecSync(ctx, &runtimev1.ExecSyncRequest{ContainerId: i.ID, Cmd: args})
	if err != nil {
		return 0, refused(ctx, args[0], i.ID, err)
	}
	if _, err := s.Stdout.Write(reply.GetStdout()); err != nil {
		return 0, err
	}
	if _, err := s.Stderr.Write(reply.GetStderr()); err != nil {
		return 0, err
	}
	return int(reply.GetExitCode()), nil
}

// RefusedError is a command that the container runtime did not run.
type RefusedError struct {
	Command, Container string
	Err                error // gRPC's
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("run %s in container %s: %s", e.Command, Short(e.Container), status.Convert(e.Err).Message())
}
func (e *RefusedError) Unwrap() error { return e.Err }

func refused(ctx context.Context, command, container string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &RefusedError{Command: command, Container: container, Err: err}
}

// UnreadableError is a file whose name the container's cmd.exe would take for
// something else.
type UnreadableError struct{ Path string }

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("read %s: cmd.exe, which reads it in the container, would not take this for a file's name; try --via hcsdiag", e.Path)
}

// Read writes a file of the container to stdout and returns the exit code of what
// read it.
func (i Inside) Read(ctx context.Context, path string, s command.Streams) (int, error) {
	if i.Way == ByTool {
		return command.Run(ctx, i.Processes, &agentv1.RunCommand{Path: hcsdiag, Args: []string{"read", i.ID, path}}, s)
	}
	// A path without a space comes there without quotes, where more ends a word.
	if strings.ContainsAny(path, "\"<>|&^%*?\r\n") || !strings.Contains(path, " ") && strings.ContainsAny(path, ",;=") {
		return 0, &UnreadableError{Path: path}
	}
	// Every Windows image has cmd.exe, Nano Server too. Its type is for text.
	return i.Exec(ctx, []string{"cmd.exe", "/d", "/c", "type", strings.ReplaceAll(path, "/", `\`)}, s)
}
