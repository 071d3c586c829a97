package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// tester returns a machine with programs under C:\t, each named after its
// behaviour.
func tester(t *testing.T) (*simulated.Machine, *client) {
	t.Helper()
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	for name, main := range map[string]func(ctx context.Context, p *simulated.Process) int{
		"cat": func(_ context.Context, p *simulated.Process) int {
			io.Copy(p.Stdout, p.Stdin)
			return 0
		},
		"both": func(_ context.Context, p *simulated.Process) int {
			fmt.Fprint(p.Stdout, "out ", strings.Join(p.Args, "|"), " in ", p.Folder, " with ", p.Environment)
			fmt.Fprint(p.Stderr, "err")
			return 7
		},
		"flood": func(ctx context.Context, p *simulated.Process) int {
			line := bytes.Repeat([]byte("x"), 64<<10)
			for ctx.Err() == nil {
				if _, err := p.Stdout.Write(line); err != nil {
					return 1
				}
			}
			return 0
		},
		"hang": func(ctx context.Context, _ *simulated.Process) int {
			<-ctx.Done()
			return 0
		},
	} {
		path := `C:\t\` + name + ".exe"
		put(t, m, path, simulated.Binary(simulated.BinarySpec{Name: name}))
		m.Register(simulated.Program{
			Name:  name,
			Match: func(image *simulated.Image) bool { return image.Path == path },
			Main:  main,
		})
	}
	return m, connect(t, m.Process("agent"))
}

type runCall = grpc.BidiStreamingClient[agentv1.RunRequest, agentv1.RunReply]

func (c *client) run(t *testing.T, ctx context.Context, command *agentv1.RunCommand) runCall {
	t.Helper()
	call, err := c.processes.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := call.Send(&agentv1.RunRequest{Command: command}); err != nil {
		t.Fatal(err)
	}
	return call
}

// collect reads a command's output to its end.
func collect(call runCall) (stdout, stderr []byte, code int, err error) {
	for {
		reply, err := call.Recv()
		if err != nil {
			return stdout, stderr, code, err
		}
		stdout, stderr = append(stdout, reply.GetStdout()...), append(stderr, reply.GetStderr()...)
		if reply.GetExited() {
			if _, err := call.Recv(); err != io.EOF {
				return stdout, stderr, -1, fmt.Errorf("after the exit code: %w", err)
			}
			return stdout, stderr, int(reply.GetExitCode()), nil
		}
	}
}

// A command that does not read stdin ends even if stdin stays open.
func TestRunKeepsBothStreamsAndTheExitCode(t *testing.T) {
	_, c := tester(t)
	stdout, stderr, code, err := collect(c.run(t, t.Context(), &agentv1.RunCommand{
		Path: `C:\t\both.exe`, Args: []string{"a b", `"`}, Folder: `C:\Windows`, Environment: []string{"X=1"},
	}))
	switch {
	case err != nil:
		t.Fatal(err)
	case code != 7:
		t.Fatalf("code is %v, want 7", code)
	case string(stdout) != `out a b|" in C:\Windows with [X=1]`:
		t.Fatalf("stdout is %q, want %q", string(stdout), `out a b|" in C:\Windows with [X=1]`)
	case string(stderr) != "err":
		t.Fatalf("stderr is %q, want %q", string(stderr), "err")
	}
}

func TestRunFeedsStdin(t *testing.T) {
	_, c := tester(t)
	for _, end := range []string{"stdin_closed", "half close"} {
		call := c.run(t, t.Context(), &agentv1.RunCommand{Path: `C:\t\cat.exe`})
		content := random(3 << 20)
		sent := make(chan error, 1)
		go func() {
			for part := range slices.Chunk(content, 100<<10) {
				if err := call.Send(&agentv1.RunRequest{Stdin: part}); err != nil {
					sent <- err
					return
				}
			}
			if end == "half close" {
				sent <- call.CloseSend()
				return
			}
			sent <- call.Send(&agentv1.RunRequest{StdinClosed: true})
		}()
		stdout, _, code, err := collect(call)
		switch {
		case err != nil:
			t.Errorf("%s: %v", end, err)
		case code != 0:
			t.Errorf("%s: code is %v, want 0", end, code)
		case !bytes.Equal(stdout, content):
			t.Errorf("%s: stdout differs from content", end)
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
}

func TestRunWhatCannotRun(t *testing.T) {
	_, c := tester(t)
	for path, is := range map[string]func(error) bool{
		`C:\t\none.exe`: func(err error) bool { return is(err, fault.ErrNotExist) },
		"":              func(err error) bool { return status.Code(err) == codes.InvalidArgument },
	} {
		if _, _, _, err := collect(c.run(t, t.Context(), &agentv1.RunCommand{Path: path})); !is(err) {
			t.Errorf("%q: got %v", path, err)
		}
	}
}

// The command ends when the caller disconnects, in any way.
func TestRunEndsWithTheCall(t *testing.T) {
	for _, program := range []string{"hang", "flood", "cat"} {
		for _, way := range []string{"cancel", "hang up"} {
			t.Run(program+", "+way, func(t *testing.T) {
				m, c := tester(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				call := c.run(t, ctx, &agentv1.RunCommand{Path: `C:\t\` + program + ".exe"})
				runs := func() bool { return running(t, m, program+".exe") }
				await(t, runs)
				if way == "cancel" {
					cancel()
				} else {
					c.stream.Close()
				}
				await(t, func() bool { return !runs() })
				if _, _, _, err := collect(call); err == nil {
					t.Error("the call ended well")
				}
			})
		}
	}
}

func running(t *testing.T, m *simulated.Machine, name string) bool {
	t.Helper()
	list, err := m.Process("look").Processes.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list, func(p platform.Process) bool { return p.Name == name })
}

func TestListAndKill(t *testing.T) {
	_, c := tester(t)
	call := c.run(t, t.Context(), &agentv1.RunCommand{Path: `C:\t\hang.exe`})
	var pid uint32
	await(t, func() bool {
		list, err := c.processes.List(t.Context(), &agentv1.ListProcessesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.GetProcesses() {
			if p.GetImage() == `C:\t\hang.exe` {
				pid = p.GetPid()
			}
		}
		return pid != 0
	})
	if _, err := c.processes.Kill(t.Context(), &agentv1.KillProcessRequest{Pid: pid}); err != nil {
		t.Fatal(err)
	}
	switch _, _, code, err := collect(call); {
	case err != nil:
		t.Fatal(err)
	case code == 0:
		t.Fatal("code is 0")
	}
	if _, err := c.processes.Kill(t.Context(), &agentv1.KillProcessRequest{Pid: pid}); !is(err, fault.ErrNotExist) {
		t.Fatalf("the error is %v, want %v", err, fault.ErrNotExist)
	}
}
