package criproxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/criproxy"
	"github.com/swdt-dev/swdt/internal/node/ssh"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/cri"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func version(ctx context.Context, c runtimev1.RuntimeServiceClient) (string, error) {
	reply, err := c.Version(ctx, &runtimev1.VersionRequest{})
	return reply.GetRuntimeVersion(), err
}

func TestAClientThatKnowsNothingOfSSH(t *testing.T) {
	f := start(t, simulated.Node)
	c, _ := client(t, proxy(t, f.keeper(cri.DefaultPipe)))
	if got, err := version(t.Context(), c); err != nil || got != simulated.ContainerdVersion {
		t.Fatalf("version %q, %v", got, err)
	}
	stats, err := c.ListContainerStats(t.Context(), &runtimev1.ListContainerStatsRequest{})
	if err != nil || len(stats.GetStats()) != 1 {
		t.Fatalf("stats %v, %v", stats, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := c.GetContainerEvents(ctx, &runtimev1.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	event, err := events.Recv()
	if err != nil || event.GetContainerEventType() != runtimev1.ContainerEventType_CONTAINER_STARTED_EVENT {
		t.Fatalf("event %v, %v", event, err)
	}
}

func TestFiftyClientsTenThousandCalls(t *testing.T) {
	f := start(t, simulated.Node)
	endpoint := proxy(t, f.keeper(cri.DefaultPipe))
	var clients sync.WaitGroup
	for range 50 {
		clients.Go(func() {
			c, conn := client(t, endpoint)
			defer conn.Close()
			for range 200 {
				if got, err := version(t.Context(), c); err != nil || got != simulated.ContainerdVersion {
					t.Errorf("version %q, %v", got, err)
					return
				}
			}
		})
	}
	clients.Wait() // TestMain would detect leaked goroutines
	if got := f.node.Connections(); got != 1 {
		t.Errorf("%d SSH connections", got)
	}
}

func TestRuntimeKilledDuringACall(t *testing.T) {
	f := start(t, simulated.Node)
	c, _ := client(t, proxy(t, f.keeper(cri.DefaultPipe)))
	events, err := c.GetContainerEvents(t.Context(), &runtimev1.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.Recv(); err != nil {
		t.Fatal(err)
	}
	if n := f.machine.Kill("containerd.exe"); n != 1 {
		t.Fatalf("killed %d", n)
	}
	if _, err := events.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the call that was under way: %v", err)
	}
	// While no process serves the pipe, the error names that cause.
	_, err = version(t.Context(), c)
	if status.Code(err) != codes.Unavailable || !strings.Contains(status.Convert(err).Message(),
		"is containerd running?") {
		t.Errorf("without a runtime: %v", err)
	}
	if err := f.machine.Process("test").Services.Start(t.Context(), "containerd"); err != nil {
		t.Fatal(err)
	}
	if got, err := version(t.Context(), again(t, c)); err != nil || got != simulated.ContainerdVersion {
		t.Errorf("after its restart: %q, %v", got, err)
	}
}

// again waits until a client that backs off after failures works again, and returns it.
func again(t *testing.T, c runtimev1.RuntimeServiceClient) runtimev1.RuntimeServiceClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if _, err := c.Version(ctx, &runtimev1.VersionRequest{}, grpc.WaitForReady(true)); err == nil {
			return c
		}
	}
	t.Fatal("it never works again")
	return c
}

func TestConnectionLost(t *testing.T) {
	f := start(t, simulated.Node)
	c, _ := client(t, proxy(t, f.keeper(cri.DefaultPipe)))
	events, err := c.GetContainerEvents(t.Context(), &runtimev1.GetEventsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := events.Recv(); err != nil {
		t.Fatal(err)
	}
	f.cut()
	if _, err := events.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the call that was under way: %v", err)
	}
	if got, err := version(t.Context(), again(t, c)); err != nil || got != simulated.ContainerdVersion {
		t.Errorf("afterwards: %q, %v", got, err)
	}
	if got := f.node.Connections(); got != 2 {
		t.Errorf("%d SSH connections", got)
	}
}

// pipeServer serves containerd's pipe in place of containerd.
func pipeServer(t testing.TB, f *fixture, serve func(net.Conn)) {
	t.Helper()
	listener, err := f.machine.Spawn("runtime.exe").ListenPipe(cri.DefaultPipe)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
}

func dialSocket(t testing.TB, endpoint string) *net.UnixConn {
	t.Helper()
	conn, err := net.Dial("unix", strings.TrimPrefix(endpoint, "unix://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.UnixConn)
}

func TestHalfAnEndIsTheEndAndLosesNothing(t *testing.T) {
	f := start(t, simulated.Minimal)
	received := make(chan string, 1)
	pipeServer(t, f, func(conn net.Conn) {
		text, _ := io.ReadAll(conn)
		received <- string(text)
	})
	conn := dialSocket(t, proxy(t, f.keeper(cri.DefaultPipe)))
	if _, err := conn.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := <-received; got != "last words" {
		t.Errorf("the runtime read %q", got)
	}
	if n, err := conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the client read %d bytes, %v", n, err)
	}
}

func TestTheRuntimesEndIsTheClients(t *testing.T) {
	f := start(t, simulated.Minimal)
	pipeServer(t, f, func(conn net.Conn) {
		if _, err := conn.Read(make([]byte, 5)); err == nil { // the runtime does not speak first
			_, _ = conn.Write([]byte("bye"))
		}
	})
	conn := dialSocket(t, proxy(t, f.keeper(cri.DefaultPipe)))
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(conn); err != nil || string(text) != "bye" {
		t.Errorf("read %q, %v", text, err)
	}
}

// A client that does not read blocks the runtime's writes to it, but no other client.
func TestBackPressure(t *testing.T) {
	f := start(t, simulated.Minimal)
	var flooded atomic.Int64
	pipeServer(t, f, func(conn net.Conn) {
		what := make([]byte, 1)
		if _, err := conn.Read(what); err != nil {
			return
		}
		if what[0] == 'e' {
			_, _ = io.Copy(conn, conn)
			return
		}
		for chunk := make([]byte, 1<<20); ; {
			n, err := conn.Write(chunk)
			flooded.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	endpoint := proxy(t, f.keeper(cri.DefaultPipe))
	if _, err := dialSocket(t, endpoint).Write([]byte("f")); err != nil {
		t.Fatal(err)
	}
	echo := dialSocket(t, endpoint)
	if _, err := echo.Write([]byte("e")); err != nil {
		t.Fatal(err)
	}
	message, back := make([]byte, 64<<10), make([]byte, 64<<10)
	for range 500 {
		go func() { _, _ = echo.Write(message) }()
		if _, err := io.ReadFull(echo, back); err != nil {
			t.Fatal(err)
		}
	}
	// A window of 8 MiB, plus the data in buffers on the way.
	if got := flooded.Load(); got > 32<<20 {
		t.Errorf("the runtime got rid of %d bytes that nobody read", got)
	}
}

func TestOnlyPipesOfRuntimes(t *testing.T) {
	f := start(t, simulated.Minimal)
	for _, path := range []string{`\\.\pipe\lsass`, `\\.\pipe\containerd-containerd\..\lsass`,
		`\\other\pipe\containerd-containerd`, ""} {
		if _, err := f.node.DialPipe(t.Context(), path); !errors.Is(err, fault.ErrPermission) {
			t.Errorf("%q: the error is %v, want %v", path, err, fault.ErrPermission)
		}
	}
	if conn, err := f.node.DialPipe(t.Context(), `//./PIPE/containerd-containerd`); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("nobody serves it: %v, %v", conn, err)
	}
	for _, operation := range f.machine.Operations() {
		if operation.Kind == simulated.OpPipeDial && strings.Contains(operation.Target, "lsass") {
			t.Errorf("the agent tried %s", operation.Target)
		}
	}
}

// broken is a node whose connection is lost.
type broken struct {
	mu         sync.Mutex
	connected  bool
	reconnects int
	reconnect  error
}

func (b *broken) DialPipe(context.Context, string) (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.connected {
		return nil, &node.LostError{Node: "win1"}
	}
	client, server := net.Pipe()
	return client, server.Close()
}

func (b *broken) DialPort(context.Context, netip.AddrPort) (*node.PortConn, error) {
	return nil, &node.LostError{Node: "win1"}
}

func (b *broken) Reconnect(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reconnects++
	b.connected = b.reconnect == nil
	return b.reconnect
}

func TestOneOfManyConnectsAgain(t *testing.T) {
	b := &broken{}
	keeper := &criproxy.Keeper{Node: b, Reporter: ui.Discard{}}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			conn, err := keeper.Dial(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		})
	}
	all.Wait()
	if b.reconnects != 1 {
		t.Errorf("connected again %d times", b.reconnects)
	}
}

func TestNoHopeEndsTheProxy(t *testing.T) {
	b := &broken{reconnect: &node.UnreachableError{Node: "win1", Err: &ssh.AuthError{User: "Administrator"}}}
	listener, err := criproxy.Listen("tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	keeper := &criproxy.Keeper{Node: b, Reporter: ui.Discard{}}
	go func() { served <- criproxy.Serve(t.Context(), listener, keeper) }()
	c, _ := client(t, listener.Addr().String())
	if _, err := version(t.Context(), c); status.Code(err) != codes.Unavailable ||
		!strings.Contains(err.Error(), "log in") {
		t.Errorf("the client heard %v", err)
	}
	var unreachable *node.UnreachableError
	if err := <-served; !errors.As(err, &unreachable) {
		t.Errorf("the proxy ended with %v", err)
	}
	if b.reconnects != 1 {
		t.Errorf("tried %d times", b.reconnects)
	}
}
