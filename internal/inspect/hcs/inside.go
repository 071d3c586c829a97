package hcs

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming"
)

// Way is the way in which commands are run in a container.
type Way string

const (
	// ByRuntime runs a command through the container runtime. The command has separate streams for
	// stdout and stderr, and the container's own user and environment. Its real exit code is
	// returned. This also works for HostProcess containers, which are not compute systems. Without
	// stdin, the output of the command arrives when the command has ended, and is limited to 16 MB.
	ByRuntime Way = "cri"
	// ByTool runs a command with the node's hcsdiag.exe, for compute systems that the
	// runtime does not know. The exit code is hcsdiag's, which may differ from the
	// command's.
	ByTool Way = "hcsdiag"
)

// Inside runs commands and reads files in a container.
type Inside struct {
	ID        string // in full
	Way       Way
	Runtime   runtimev1.RuntimeServiceClient // for ByRuntime
	Dial      streaming.Dial                 // for ByRuntime: connects to the runtime's streaming server
	Processes agentv1.ProcessesClient        // for ByTool
}

// hcsdiag is Windows' own tool; the agent finds it on the PATH, in System32.
const hcsdiag = "hcsdiag.exe"

// Exec runs a command without stdin in the container and returns its exit code.
func (i Inside) Exec(ctx context.Context, args []string, s command.Streams) (int, error) {
	if i.Way == ByTool {
		return command.Run(ctx, i.Processes, &agentv1.RunCommand{Path: hcsdiag,
			Args: append([]string{"exec", i.ID}, args...)}, s)
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

// RefusedError reports a command that the container runtime did not run.
type RefusedError struct {
	Command, Container string
	Err                error // from gRPC
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

// UnreadableError reports a file name that the container's cmd.exe would misinterpret.
type UnreadableError struct{ Path string }

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("read %s: cmd.exe, which reads the file in the container, would misinterpret this name; use "+
		"--method hcsdiag", e.Path)
}

// Read writes a file of the container to stdout and returns the exit code of the program that read
// the file.
func (i Inside) Read(ctx context.Context, path string, s command.Streams) (int, error) {
	if i.Way == ByTool {
		return command.Run(ctx, i.Processes, &agentv1.RunCommand{Path: hcsdiag, Args: []string{"read", i.ID, path}}, s)
	}
	// If a path contains no space, swdt passes the path without quotes. cmd.exe then also splits
	// the path at each comma, semicolon and equals sign.
	if strings.ContainsAny(path, "\"<>|&^%*?\r\n") || !strings.Contains(path, " ") && strings.ContainsAny(path, ",;=") {
		return 0, &UnreadableError{Path: path}
	}
	// Every Windows image has cmd.exe, including Nano Server. The command "type", which is built
	// into cmd.exe, prints a file.
	return i.Exec(ctx, []string{"cmd.exe", "/d", "/c", "type", strings.ReplaceAll(path, "/", `\`)}, s)
}
