package command_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node/command"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program imitates the agent's side.
type program struct {
	agentv1.UnimplementedProcessesServer
	run func(agentv1.Processes_RunServer) error
}

func (p *program) Run(stream agentv1.Processes_RunServer) error { return p.run(stream) }

func client(t *testing.T, run func(agentv1.Processes_RunServer) error) agentv1.ProcessesClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	agentv1.RegisterProcessesServer(server, &program{run: run})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///"+listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); server.Stop(); <-served })
	return agentv1.NewProcessesClient(conn)
}

// cat echoes stdin to both streams and ends with 7.
func cat(stream agentv1.Processes_RunServer) error {
	first, err := stream.Recv()
	if err != nil || first.GetCommand().GetPath() != "cat" {
		return errors.New("no command comes first")
	}
	for closed := first.GetStdinClosed(); !closed; {
		request, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := stream.Send(&agentv1.RunReply{Stdout: request.GetStdin(), Stderr: request.GetStdin()}); err != nil {
			return err
		}
		closed = request.GetStdinClosed()
	}
	return stream.Send(&agentv1.RunReply{Stdout: []byte("!"), Exited: true, ExitCode: 7})
}

func TestStreamsAndExitCode(t *testing.T) {
	processes := client(t, cat)
	big := strings.Repeat("0123456789abcdef\n", 20_000)
	var stdout, stderr bytes.Buffer
	code, err := command.Run(t.Context(), processes, &agentv1.RunCommand{Path: "cat"},
		command.Streams{Stdin: strings.NewReader(big), Stdout: &stdout, Stderr: &stderr})
	switch {
	case err != nil:
		t.Error(err)
	case code != 7:
		t.Errorf("code is %v, want 7", code)
	case stdout.String() != big+"!":
		t.Errorf("stdout.String() is %v, want %v", stdout.String(), big+"!")
	case stderr.String() != big:
		t.Errorf("stderr.String() is %v, want %v", stderr.String(), big)
	}
}

func TestWithoutStreams(t *testing.T) {
	if code, err := command.Run(t.Context(), client(t, cat), &agentv1.RunCommand{Path: "cat"},
		command.Streams{}); err != nil || code != 7 {
		t.Errorf("exit code %d, %v", code, err)
	}
}

func TestAProgramThatIgnoresItsStdin(t *testing.T) {
	reader, writer := io.Pipe() // without any data
	defer writer.Close()
	code, err := command.Run(t.Context(), client(t, func(stream agentv1.Processes_RunServer) error {
		return stream.Send(&agentv1.RunReply{Exited: true, ExitCode: 3})
	}), &agentv1.RunCommand{Path: "true"}, command.Streams{Stdin: reader})
	if err != nil || code != 3 {
		t.Errorf("exit code %d, %v", code, err)
	}
}

func TestAFullStdoutEndsTheProgram(t *testing.T) {
	ended := make(chan error, 1)
	_, err := command.Run(t.Context(), client(t, func(stream agentv1.Processes_RunServer) error {
		for {
			if err := stream.Send(&agentv1.RunReply{Stdout: make([]byte, 1<<16)}); err != nil {
				ended <- err
				return err
			}
		}
	}), &agentv1.RunCommand{Path: "yes"}, command.Streams{Stdout: full{}})
	if !errors.Is(err, errDiskFull) {
		t.Errorf("the error is %v, want %v", err, errDiskFull)
	}
	<-ended // otherwise the program goes on
}

var errDiskFull = errors.New("disk full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errDiskFull }

func TestABrokenStdinIsAnError(t *testing.T) {
	_, err := command.Run(t.Context(), client(t, cat), &agentv1.RunCommand{Path: "cat"},
		command.Streams{Stdin: broken{}})
	if !errors.Is(err, errBroken) {
		t.Errorf("the error is %v, want %v", err, errBroken)
	}
}

var errBroken = errors.New("unplugged")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

func TestCancelledRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{})
	go func() { <-begun; cancel() }()
	_, err := command.Run(ctx, client(t, func(stream agentv1.Processes_RunServer) error {
		close(begun)
		<-stream.Context().Done()
		return stream.Context().Err()
	}), &agentv1.RunCommand{Path: "sleep"}, command.Streams{})
	if err == nil {
		t.Error("a cancelled command succeeded")
	}
}

func TestAnAgentThatForgetsTheExitCode(t *testing.T) {
	_, err := command.Run(t.Context(), client(t, func(agentv1.Processes_RunServer) error { return nil }),
		&agentv1.RunCommand{Path: "x"}, command.Streams{})
	if err == nil {
		t.Error("an exit code was made up")
	}
}

func TestFailedErrorIsShortAndKeepsAll(t *testing.T) {
	stderr := strings.Repeat("noise\n", 100) + "\nthe reason\n"
	e := &command.FailedError{Command: "choco install vim", ExitCode: 1, Stderr: stderr}
	switch text := e.Error(); {
	case !strings.HasPrefix(text, "choco install vim ended with exit code 1: "):
		t.Errorf("text: text does not begin with %q:\n%s", "choco install vim ended with exit code 1: ", text)
	case !strings.HasSuffix(text, "the reason"):
		t.Errorf("text: text does not end with %q:\n%s", "the reason", text)
	case strings.Count(text, "noise") != 4:
		t.Errorf("text: %q occurs %d times in text, want %d:\n%s", "noise", strings.Count(text, "noise"), 4, text)
	}
	if e.Stderr != stderr {
		t.Error("stderr was shortened")
	}
	e = &command.FailedError{Command: "dism", ExitCode: 87, Stdout: "unknown option", Stderr: "\r\n"}
	if !strings.HasSuffix(e.Error(), "unknown option") {
		t.Errorf("text: %s", e)
	}
}

// The node decides how much a program prints; the part that is kept in memory is bounded.
func TestMemoryIsBounded(t *testing.T) {
	for _, w := range []io.Writer{&bytes.Buffer{}, &strings.Builder{}} {
		bounded := command.LimitMemory(w)
		block := make([]byte, 1<<20)
		var err error
		for range 65 {
			if _, err = bounded.Write(block); err != nil {
				break
			}
		}
		if err == nil {
			t.Errorf("%T took more than 64 MiB", w)
		}
	}
	if w := command.LimitMemory(io.Discard); w != io.Discard {
		t.Error("a writer that keeps nothing was bounded")
	}
}
