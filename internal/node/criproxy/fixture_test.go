package criproxy_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/agentbin"
	"github.com/swdt-dev/swdt/internal/node/criproxy"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/sandbox"
	"github.com/swdt-dev/swdt/internal/ui"
)

// No connection leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a simulated node behind a real SSH server on loopback.
type fixture struct {
	machine *simulated.Machine
	node    *node.Node

	mu    sync.Mutex
	conns []net.Conn // accepted by the SSH server
}

func start(t testing.TB, preset simulated.Preset) *fixture {
	t.Helper()
	agent := agentbin.FromBytes(simulated.Binary(simulated.BinarySpec{Name: "swdt-agent"}))
	f := &fixture{machine: simulated.New(simulated.Options{
		Preset: preset, Agent: &simulated.Agent{Hash: agent.Hash, Main: sandbox.AgentMain(agent.Hash)},
	})}
	t.Cleanup(f.machine.Close)
	options := node.Options{Agent: agent, HomeDir: t.TempDir(), StateFile: filepath.Join(t.TempDir(), "machines.json")}
	n, err := node.Connect(t.Context(), f.serve(t), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	f.node = n
	return f
}

// serve runs the SSH server and returns a node file for it.
func (f *fixture) serve(t testing.TB) config.Document {
	t.Helper()
	hostKey, _, err := sandbox.NewKey("host")
	if err != nil {
		t.Fatal(err)
	}
	clientKey, pem, err := sandbox.NewKey("client")
	if err != nil {
		t.Fatal(err)
	}
	keyFile, file := filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "node.yaml")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	text := sandbox.NodeFile("sandbox", listener.Addr().String(), keyFile, hostKey.PublicKey())
	for path, content := range map[string][]byte{keyFile: pem, file: []byte(text)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- sandbox.Serve(ctx, &noting{listener, f}, sandbox.ServerOptions{
			Machine: f.machine, HostKey: hostKey, AuthorizedKeys: []ssh.PublicKey{clientKey.PublicKey()},
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	documents, err := config.Load([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return documents[0]
}

// cut breaks every connection, as pulling a cable does.
func (f *fixture) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range f.conns {
		conn.Close()
	}
	f.conns = nil
}

type noting struct {
	net.Listener
	fixture *fixture
}

func (n *noting) Accept() (net.Conn, error) {
	conn, err := n.Listener.Accept()
	if err == nil {
		n.fixture.mu.Lock()
		defer n.fixture.mu.Unlock()
		n.fixture.conns = append(n.fixture.conns, conn)
	}
	return conn, err
}

func (f *fixture) keeper(pipe string) *criproxy.Keeper {
	return &criproxy.Keeper{Node: f.node, Pipe: pipe, Reporter: ui.Discard{}}
}

// proxy serves on a socket until the test ends, and returns the socket's endpoint.
func proxy(t testing.TB, dialer criproxy.Dialer) string {
	t.Helper()
	listener, err := criproxy.Listen("unix://" + filepath.Join(t.TempDir(), "cri.sock"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- criproxy.Serve(ctx, listener, dialer) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return criproxy.Endpoint(listener)
}

// client returns a plain gRPC client, as any program would use.
func client(t testing.TB, endpoint string) (runtimev1.RuntimeServiceClient, *grpc.ClientConn) {
	t.Helper()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return runtimev1.NewRuntimeServiceClient(conn), conn
}
