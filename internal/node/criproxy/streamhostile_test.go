package criproxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/tools/remotecommand"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/exec"

	"github.com/swdt-dev/swdt/internal/node/criproxy"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/cri"
)

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
