package criproxy_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"google.golang.org/grpc"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/exec"

	"github.com/swdt-dev/swdt/internal/node/criproxy/streaming/streamingtest"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/cri"
)

// startStreams starts a runtime with a streaming server on loopback, which the simulated node
// shares, and returns a client of the proxy.
func startStreams(t *testing.T) runtimev1.RuntimeServiceClient {
	t.Helper()
	f := start(t, simulated.Minimal)
	serveCRI(t, f, streamingtest.Start(t))
	c, _ := client(t, proxy(t, f.keeper(cri.DefaultPipe)))
	return c
}

// serveCRI serves the pipe of the simulated node's runtime.
func serveCRI(t *testing.T, f *fixture, runtime runtimev1.RuntimeServiceServer) {
	t.Helper()
	listener, err := f.machine.Spawn("runtime.exe").ListenPipe(cri.DefaultPipe)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimev1.RegisterRuntimeServiceServer(server, runtime)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}

// executors are the transports of client-go's clients, as crictl uses them.
func executors(t *testing.T, raw string) map[string]func() (remotecommand.Executor, error) {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{}
	return map[string]func() (remotecommand.Executor, error){
		"SPDY": func() (remotecommand.Executor, error) { return remotecommand.NewSPDYExecutor(config, "POST", u) },
		// The only protocol that the runtimes' servers have for WebSocket. It cannot end stdin.
		"WebSocket": func() (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutorForProtocols(config, "GET", raw, "v4.channel.k8s.io")
		},
	}
}

func execURL(t *testing.T, c runtimev1.RuntimeServiceClient, q *runtimev1.ExecRequest) string {
	t.Helper()
	q.ContainerId, q.Stdout = "c1", true
	reply, err := c.Exec(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return reply.GetUrl()
}

func TestExec(t *testing.T) {
	c := startStreams(t)
	for _, transport := range []string{"SPDY", "WebSocket"} {
		t.Run(transport, func(t *testing.T) {
			execute := func(q *runtimev1.ExecRequest, o remotecommand.StreamOptions) error {
				t.Helper()
				executor, err := executors(t, execURL(t, c, q))[transport]()
				if err != nil {
					t.Fatal(err)
				}
				return executor.StreamWithContext(t.Context(), o)
			}
			t.Run("stdin", func(t *testing.T) {
				var out bytes.Buffer
				stdin, open := io.Pipe() // it has no end
				defer open.Close()
				go func() { _, _ = io.WriteString(open, "world") }()
				if err := execute(&runtimev1.ExecRequest{Cmd: []string{"greet"}, Stdin: true},
					remotecommand.StreamOptions{Stdin: stdin, Stdout: &out}); err != nil {
					t.Fatal(err)
				}
				if got, want := out.String(), "hello world"; got != want {
					t.Errorf("the program printed %q, want %q", got, want)
				}
			})
			t.Run("exit code", func(t *testing.T) {
				err := execute(&runtimev1.ExecRequest{Cmd: []string{"exit"}},
					remotecommand.StreamOptions{Stdout: io.Discard})
				var exited exec.ExitError
				if !errors.As(err, &exited) || exited.ExitStatus() != 7 {
					t.Errorf("ended with %v, want exit code 7", err)
				}
			})
			t.Run("terminal sizes", func(t *testing.T) {
				var out bytes.Buffer
				sizes := &sizeQueue{{Width: 80, Height: 24}, {Width: 120, Height: 50}}
				if err := execute(&runtimev1.ExecRequest{Cmd: []string{"size"}, Tty: true},
					remotecommand.StreamOptions{Stdout: &out, Tty: true, TerminalSizeQueue: sizes}); err != nil {
					t.Fatal(err)
				}
				if got, want := out.String(), "80x24 120x50 "; got != want {
					t.Errorf("the program got sizes %q, want %q", got, want)
				}
			})
		})
	}
}

// Only SPDY can end stdin while the other streams continue.
func TestTheEndOfStdin(t *testing.T) {
	c := startStreams(t)
	text := make([]byte, 1<<20)
	_, _ = rand.Read(text)
	q := &runtimev1.ExecRequest{Cmd: []string{"copy"}, Stdin: true, Stderr: true}
	executor, err := executors(t, execURL(t, c, q))["SPDY"]()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{
		Stdin: bytes.NewReader(text), Stdout: &out, Stderr: &errs,
	}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), text) || errs.String() != "1048576 bytes" {
		t.Errorf("%d bytes of output, %q", out.Len(), &errs)
	}
}

type sizeQueue []remotecommand.TerminalSize

func (q *sizeQueue) Next() *remotecommand.TerminalSize {
	if len(*q) == 0 {
		return nil
	}
	next := (*q)[0]
	*q = (*q)[1:]
	return &next
}

func TestAttach(t *testing.T) {
	c := startStreams(t)
	reply, err := c.Attach(t.Context(), &runtimev1.AttachRequest{ContainerId: "c1", Stdout: true})
	if err != nil {
		t.Fatal(err)
	}
	executor, err := executors(t, reply.GetUrl())["SPDY"]()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "attached to c1"; got != want {
		t.Errorf("attach printed %q, want %q", got, want)
	}
}

// forwardPort forwards a port with client-go and returns its address on this machine.
func forwardPort(t *testing.T, c runtimev1.RuntimeServiceClient) string {
	t.Helper()
	reply, err := c.PortForward(t.Context(), &runtimev1.PortForwardRequest{PodSandboxId: "p1", Port: []int32{80}})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(reply.GetUrl())
	if err != nil {
		t.Fatal(err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", u)
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:80"}, stop, ready,
		io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	t.Cleanup(func() {
		close(stop)
		if err := <-ended; err != nil {
			t.Errorf("forward ports: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		t.Fatalf("forward ports: %v", err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
}

func TestPortForwardTenMegabytesBothWays(t *testing.T) {
	conn, err := net.Dial("tcp", forwardPort(t, startStreams(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent := make([]byte, 10<<20)
	_, _ = rand.Read(sent)
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	received, err := io.ReadAll(conn)
	if err != nil || !bytes.Equal(received, sent) {
		t.Errorf("%d of %d bytes came back: %v", len(received), len(sent), err)
	}
}
