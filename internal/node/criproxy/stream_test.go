package criproxy_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	serverside "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/utils/exec"

	"github.com/swdt-dev/swdt/internal/node/criproxy"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/cri"
)

// runtimeWithStreams is a container runtime with the streaming server of containerd and CRI-O.
type runtimeWithStreams struct {
	runtimev1.UnimplementedRuntimeServiceServer
	streams streaming.Server
}

func (r *runtimeWithStreams) Exec(_ context.Context, q *runtimev1.ExecRequest) (*runtimev1.ExecResponse, error) {
	return r.streams.GetExec(q)
}

func (r *runtimeWithStreams) Attach(_ context.Context, q *runtimev1.AttachRequest) (*runtimev1.AttachResponse, error) {
	return r.streams.GetAttach(q)
}

func (r *runtimeWithStreams) PortForward(_ context.Context, q *runtimev1.PortForwardRequest) (
	*runtimev1.PortForwardResponse, error) {
	return r.streams.GetPortForward(q)
}

// programs are the containers of the runtime.
type programs struct{}

// Exec runs one of the programs: "copy" copies its stdin to its end, "greet" reads five bytes of it,
// "exit" ends with code 7, and "size" prints two sizes of its terminal.
func (programs) Exec(_ context.Context, _ string, cmd []string, in io.Reader, out, errs io.WriteCloser, _ bool,
	resize <-chan serverside.TerminalSize) error {
	switch cmd[0] {
	case "copy":
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
		_, err = fmt.Fprintf(errs, "%d bytes", len(text))
		return err
	case "greet":
		name := make([]byte, 5)
		if _, err := io.ReadFull(in, name); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "hello %s", name)
		return err
	case "exit":
		return exec.CodeExitError{Err: errors.New("exit code 7"), Code: 7}
	case "size":
		for range 2 {
			size := <-resize
			if _, err := fmt.Fprintf(out, "%dx%d ", size.Width, size.Height); err != nil {
				return err
			}
		}
	}
	return nil
}

// Attach prints the ID of the container.
func (programs) Attach(_ context.Context, id string, _ io.Reader, out, _ io.WriteCloser, _ bool,
	_ <-chan serverside.TerminalSize) error {
	_, err := io.WriteString(out, "attached to "+id)
	return err
}

// PortForward sends back what it receives.
func (programs) PortForward(_ context.Context, _ string, _ int32, stream io.ReadWriteCloser) error {
	_, err := io.Copy(stream, stream)
	return err
}

// startStreams starts a runtime with a streaming server on loopback, which the simulated node
// shares, and returns a client of the proxy.
func startStreams(t *testing.T) runtimev1.RuntimeServiceClient {
	t.Helper()
	f := start(t, simulated.Minimal)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: listener.Addr().String()}
	streams, err := streaming.NewServer(config, programs{})
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: streams, ReadHeaderTimeout: time.Minute}
	go func() { _ = web.Serve(listener) }()
	t.Cleanup(func() { web.Close() })
	serveCRI(t, f, &runtimeWithStreams{streams: streams})
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

// A URL serves its client alone: neither a second connection, nor one without its secret, reaches the
// node.
func TestAURLIsForOneConnection(t *testing.T) {
	c := startStreams(t)
	given := execURL(t, c, &runtimev1.ExecRequest{Cmd: []string{"exit"}})
	u, err := url.Parse(given)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(u.Path, "/") // "", secret, exec, token
	if len(parts) != 4 || len(parts[1]) < 26 || parts[2] != "exec" {
		t.Fatalf("URL %q", given)
	}
	get := func(path string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+u.Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		return reply.StatusCode
	}
	for _, path := range []string{"/", "/exec/" + parts[3], "/" + strings.Repeat("A", 26) + "/exec/" + parts[3],
		"/" + parts[1] + "/exec/other", "//exec/" + parts[3]} {
		if code := get(path); code != http.StatusNotFound && code != http.StatusBadRequest {
			t.Errorf("GET %s: status %d", path, code)
		}
	}
	executor, err := executors(t, given)["SPDY"]()
	if err != nil {
		t.Fatal(err)
	}
	var exited exec.ExitError
	err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
	if !errors.As(err, &exited) {
		t.Errorf("the client that has the URL: %v", err)
	}
	if code := get(u.Path); code != http.StatusNotFound {
		t.Errorf("the second connection: status %d", code)
	}
}

// named is a runtime that answers Exec with a URL of the test's choice.
type named struct {
	runtimev1.UnimplementedRuntimeServiceServer
	url string
}

func (n *named) Exec(context.Context, *runtimev1.ExecRequest) (*runtimev1.ExecResponse, error) {
	return &runtimev1.ExecResponse{Url: n.url}, nil
}

func TestAHostileURLIsRefused(t *testing.T) {
	f, runtime := start(t, simulated.Minimal), &named{}
	serveCRI(t, f, runtime)
	c, _ := client(t, proxy(t, f.keeper(cri.DefaultPipe)))
	for _, runtime.url = range []string{
		"", "/exec/token", "http://169.254.169.254:80/latest/meta-data", "http://u:p@127.0.0.1:80/x",
		"http://metadata:80/x", "http://0.0.0.0:80/x", "file:///etc/passwd", "http://127.0.0.1:80/\x1b[2J",
		"http://127.0.0.1:80/" + strings.Repeat("x", 1<<20),
	} {
		reply, err := c.Exec(t.Context(), &runtimev1.ExecRequest{})
		if status.Code(err) != codes.FailedPrecondition || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%.80q: %v, %v", runtime.url, reply, err)
		}
	}
	runtime.url = "https://127.0.0.1:49152/exec/token"
	_, err := c.Exec(t.Context(), &runtimev1.ExecRequest{})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "enable_tls_streaming") {
		t.Errorf("a server with TLS: %v", err)
	}
}

// The agent refuses an address that is not the node's, and the client gets the reason.
func TestOnlyTheNodesOwnAddressesAreDialled(t *testing.T) {
	f, runtime := start(t, simulated.Minimal), &named{}
	serveCRI(t, f, runtime)
	c, _ := client(t, proxy(t, f.keeper(cri.DefaultPipe)))
	for at, want := range map[string]string{"192.0.2.1:80": "not an address of this machine",
		closedPort(t): "is containerd running?"} {
		runtime.url = "http://" + at + "/exec/token"
		executor, err := executors(t, execURL(t, c, &runtimev1.ExecRequest{}))["SPDY"]()
		if err != nil {
			t.Fatal(err)
		}
		err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: io.Discard})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", at, err, want)
		}
	}
}

// closedPort returns a loopback address on which no process listens.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// A client's connection ends with the proxy.
func TestTheEndOfTheProxy(t *testing.T) {
	f, runtime := start(t, simulated.Minimal), &named{}
	serveCRI(t, f, runtime)
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	runtime.url = "http://" + far.Addr().String() + "/exec/token"
	listener, err := criproxy.Listen("tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- criproxy.Serve(ctx, listener, f.keeper(cri.DefaultPipe)) }()
	c, _ := client(t, listener.Addr().String())
	u, err := url.Parse(execURL(t, c, &runtimev1.ExecRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\n\r\n", u.RequestURI()); err != nil {
		t.Fatal(err)
	}
	node, err := far.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client's connection ended with %v", err)
	}
	if _, err := io.Copy(io.Discard, node); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the runtime's connection ended with %v", err)
	}
	if conn, err := net.Dial("tcp", u.Host); err == nil {
		conn.Close()
		t.Error("the port is still open")
	}
}
