package hcs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/grpc"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	serverside "k8s.io/cri-streaming/pkg/streaming"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/inspect/hcs"
	"github.com/swdt-dev/swdt/internal/node/command"
	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming"
	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming/streamingtest"
)

// streamer is a runtime with the streaming server of containerd and CRI-O.
type streamer struct {
	runtimev1.RuntimeServiceClient
	server serverside.Server
	asked  *runtimev1.ExecRequest
	url    string // in place of the server's; "": the server's
}

func (s *streamer) Exec(_ context.Context, q *runtimev1.ExecRequest, _ ...grpc.CallOption) (*runtimev1.ExecResponse,
	error) {
	s.asked = q
	reply, err := s.server.GetExec(q)
	if err == nil && s.url != "" {
		reply.Url = s.url
	}
	return reply, err
}

func startStreamer(t *testing.T) (*streamer, hcs.Inside) {
	t.Helper()
	s := &streamer{server: streamingtest.Start(t).Server}
	return s, hcs.Inside{ID: "0123456789abcdef", Way: hcs.ByRuntime, Runtime: s,
		Dial: func(_ context.Context, address netip.AddrPort) (streaming.Conn, error) {
			conn, err := net.Dial("tcp", address.String())
			if err != nil {
				return nil, err
			}
			return conn.(*net.TCPConn), nil
		}}
}

func TestInteractWithoutATerminal(t *testing.T) {
	runtime, in := startStreamer(t)
	sent := bytes.Repeat([]byte("swdt\x00\xff\r\n"), 100_000)
	var out, errs bytes.Buffer
	code, err := in.Interact(t.Context(), []string{"copy"}, nil,
		command.Streams{Stdin: bytes.NewReader(sent), Stdout: &out, Stderr: &errs})
	if err != nil || code != 0 || !bytes.Equal(out.Bytes(), sent) || errs.String() != "800000 bytes" {
		t.Errorf("exit code %d, %v; %d bytes, %q", code, err, out.Len(), errs.String())
	}
	if runtime.asked.GetTty() || !runtime.asked.GetStdin() || !runtime.asked.GetStderr() {
		t.Errorf("the request: %+v", runtime.asked)
	}
	code, err = in.Interact(t.Context(), []string{"exit"}, nil, command.Streams{Stdout: &out, Stderr: &errs})
	if err != nil || code != 7 {
		t.Errorf("exit code %d, %v", code, err)
	}
}

func TestInteractWithATerminal(t *testing.T) {
	runtime, in := startStreamer(t)
	resized := make(chan *agentv1.TerminalSize, 1)
	resized <- &agentv1.TerminalSize{Columns: 132, Rows: 43}
	keys, hold := io.Pipe() // a person who presses nothing
	defer hold.Close()
	var out bytes.Buffer
	code, err := in.Interact(t.Context(), []string{"size"}, &agentv1.TerminalSize{Columns: 80, Rows: 24},
		command.Streams{Stdin: keys, Stdout: &out, Resized: resized})
	if err != nil || code != 0 || out.String() != "80x24 132x43 " {
		t.Errorf("exit code %d, %v, %q", code, err, out.String())
	}
	if !runtime.asked.GetTty() || runtime.asked.GetStderr() {
		t.Errorf("the request: %+v", runtime.asked)
	}
}

func TestInteractThatIsRefused(t *testing.T) {
	runtime, in := startStreamer(t)
	var out, errs bytes.Buffer
	streams := command.Streams{Stdout: &out, Stderr: &errs}
	_, err := in.Interact(t.Context(), []string{"nothing"}, nil, streams)
	var refused *hcs.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), streamingtest.Missing) {
		t.Errorf("a missing program: %v", err)
	}
	// A hostile node names a place that is not its own.
	runtime.url = "http://169.254.169.254/exec/token"
	_, err = in.Interact(t.Context(), []string{"copy"}, nil, streams)
	var foreign *streaming.AddressError
	if !errors.As(err, &foreign) {
		t.Errorf("a foreign address: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runtime.url = ""
	if _, err := in.Interact(ctx, []string{"copy"}, nil, streams); !errors.Is(err, context.Canceled) {
		t.Errorf("after Ctrl-C: %v", err)
	}
}
