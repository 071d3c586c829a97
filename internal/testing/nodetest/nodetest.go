// Package nodetest provides tests with a node.Node that is connected to the real agent on a
// simulated machine, over a stream in memory. Everything except SSH is as with a real node: the
// calls, the kinds of errors, the guardian.
package nodetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent"
	"github.com/swdt-dev/swdt/internal/agent/custody"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/reply"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
	"github.com/swdt-dev/swdt/internal/wire/layout"
	"github.com/swdt-dev/swdt/internal/wire/packed"
	"github.com/swdt-dev/swdt/internal/wire/rpcerror"
)

// Node is a connected node and the machine behind it.
type Node struct {
	*node.Node
	Machine *simulated.Machine
	// Files are the machine's files, accessed by a separate process of the machine.
	Files platform.Files

	t          testing.TB
	hash       string
	executable string

	rpc current

	mutex    sync.Mutex
	conn     net.Conn
	link     Link
	calls    []string
	sessions int
	ended    []<-chan struct{} // one per session, closed when the agent has left the session
	onCall   func(method string) error
	tamper   Tamper
}

// Start boots a machine, installs the agent and connects to it. Everything ends with the test.
func Start(t testing.TB, name string, options simulated.Options) *Node {
	t.Helper()
	program := simulated.Binary(simulated.BinarySpec{Name: "swdt-agent"})
	sum := sha256.Sum256(program)
	n := &Node{Node: &node.Node{Name: name}, t: t, hash: hex.EncodeToString(sum[:])}
	n.Node.OnReconnect(n.Reconnect)
	n.executable = layout.Agent(n.hash)
	options.Agent = &simulated.Agent{Hash: n.hash, Main: n.main}
	n.Machine = simulated.New(options)
	t.Cleanup(n.Machine.Close)
	n.Files = custody.Files(n.Machine.Process("test").Files)
	n.Machine.WriteFile(n.executable, program) // the file is synced to the disk, so a power cut does not remove it
	if err := n.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Cut)
	return n
}

// begin connects, and waits until the agent answers, so that the agent's work at the start of a
// session is not part of a test.
func (n *Node) begin(ctx context.Context) error {
	if err := n.Reconnect(ctx); err != nil {
		return err
	}
	conn := n.rpc.get()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if state == connectivity.TransientFailure {
			return errors.New("the session ended at its start")
		}
		if !conn.WaitForStateChange(ctx, state) {
			return ctx.Err()
		}
	}
	return nil
}

func (n *Node) main(ctx context.Context, p *platform.Platform, executable string, args []string, stdin io.Reader,
	stdout, stderr io.Writer) int {
	return agent.Main(ctx, agent.Machine{Platform: p, Executable: executable, Hash: n.hash}, args,
		stdin, stdout, stderr)
}

// Reconnect replaces the session with a new one, as node.Reconnect does.
func (n *Node) Reconnect(ctx context.Context) error {
	n.Cut()
	if err := n.Machine.AwaitUp(ctx); err != nil {
		return &node.UnreachableError{Node: n.Name, Err: err}
	}
	client, server := net.Pipe()
	n.mutex.Lock()
	n.sessions++
	client = n.link.shape(client)
	n.conn = client
	session := n.Machine.Spawn(fmt.Sprintf("session %d", n.sessions))
	n.mutex.Unlock()
	served := make(chan struct{})
	n.mutex.Lock()
	n.ended = append(n.ended, served)
	n.mutex.Unlock()
	go func() {
		defer close(served)
		defer session.Exit() // as the agent, which ends with its connection
		_ = agent.Serve(context.WithoutCancel(ctx), agent.Machine{Platform: session.Platform, Executable: n.executable,
			Hash: n.hash}, server)
	}()
	n.t.Cleanup(func() {
		client.Close()
		<-served
	})
	if err := handshake.Dial(client, n.hash); err != nil {
		return &node.UnreachableError{Node: n.Name, Err: err}
	}
	n.mutex.Lock()
	tamper := n.tamper
	n.mutex.Unlock()
	if tamper != nil {
		tampered, err := n.tampered(client, tamper)
		if err != nil {
			return err
		}
		return n.use(tampered)
	}
	return n.use(client)
}

// use makes n's clients use the stream.
func (n *Node) use(stream net.Conn) error {
	options := append(inMemory(stream),
		grpc.WithUnaryInterceptor(n.unary), grpc.WithChainStreamInterceptor(n.stream, packed.Client))
	rpc, err := grpc.NewClient("passthrough:///node", append(options, reply.Options()...)...)
	if err != nil {
		return err
	}
	n.t.Cleanup(func() { rpc.Close() })
	if again := n.rpc.swap(rpc); again {
		return nil // the clients now use the new connection, as the clients of a real node do
	}
	n.Node.Machine = agentv1.NewMachineClient(&n.rpc)
	n.Node.Services = agentv1.NewServicesClient(&n.rpc)
	n.Node.Registry = agentv1.NewRegistryClient(&n.rpc)
	n.Node.Files = agentv1.NewFilesClient(&n.rpc)
	n.Node.Settings = agentv1.NewSettingsClient(&n.rpc)
	n.Node.Processes = agentv1.NewProcessesClient(&n.rpc)
	n.Node.Features = agentv1.NewFeaturesClient(&n.rpc)
	n.Node.Firewall = agentv1.NewFirewallClient(&n.rpc)
	n.Node.Network = agentv1.NewNetworkClient(&n.rpc)
	n.Node.Compute = agentv1.NewComputeClient(&n.rpc)
	n.Node.Swap = agentv1.NewSwapClient(&n.rpc)
	n.Node.Capture = agentv1.NewCaptureClient(&n.rpc)
	return nil
}

// inMemory returns the options of a client over one stream.
func inMemory(stream net.Conn) []grpc.DialOption {
	once := make(chan net.Conn, 1)
	once <- stream
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case c := <-once:
				return c, nil
			default:
				return nil, errors.New("the stream has ended")
			}
		}),
		grpc.WithIdleTimeout(0), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
	}
}

// current is the connection that calls use.
type current struct {
	mutex sync.Mutex
	conn  *grpc.ClientConn
}

func (c *current) swap(conn *grpc.ClientConn) (again bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	again = c.conn != nil
	c.conn = conn
	return again
}

func (c *current) get() *grpc.ClientConn {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.conn
}

// Invoke implements grpc.ClientConnInterface.
func (c *current) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	return c.get().Invoke(ctx, method, args, reply, options...)
}

// NewStream implements grpc.ClientConnInterface.
func (c *current) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (
	grpc.ClientStream, error) {
	return c.get().NewStream(ctx, desc, method, options...)
}

// Shape makes the connection to the node slow, from the next Reconnect on.
func (n *Node) Shape(link Link) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.link = link
}

// Cut breaks the connection, as pulling a cable does.
func (n *Node) Cut() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.conn != nil {
		n.conn.Close()
	}
}

// Settle waits until the agent has left every session except the current one and released the
// resources of those sessions.
func (n *Node) Settle() {
	n.mutex.Lock()
	ended := n.ended
	n.mutex.Unlock()
	for _, session := range ended[:max(len(ended)-1, 0)] {
		<-session
	}
}

// OnCall makes n call f before each call. If f returns an error, the call fails with that error. nil
// removes the previous f.
func (n *Node) OnCall(f func(method string) error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.onCall = f
}

// Calls returns the methods that were called since the previous Calls, such as
// /swdt.agent.v1.Swap/Inspect.
func (n *Node) Calls() []string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	calls := n.calls
	n.calls = nil
	return calls
}

// Sessions returns how many connections were made.
func (n *Node) Sessions() int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.sessions
}

// Put writes a file on the machine, and creates its folder if needed.
func (n *Node) Put(path string, content []byte) {
	n.t.Helper()
	if err := n.put(path, content); err != nil {
		n.t.Fatal(err)
	}
}

func (n *Node) put(path string, content []byte) error {
	for i, c := range path {
		if c == '\\' && i > len(`C:`) {
			if err := n.Files.MakeFolder(path[:i]); err != nil {
				return err
			}
		}
	}
	file, err := n.Files.Create(path, platform.CreateTruncate)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// Get returns the content of a file of the machine; nil if the file does not exist.
func (n *Node) Get(path string) []byte {
	n.t.Helper()
	file, err := n.Files.Open(path)
	if errors.Is(err, fault.ErrNotExist) {
		return nil
	}
	if err != nil {
		n.t.Fatal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		n.t.Fatal(err)
	}
	return content
}

func (n *Node) called(method string) error {
	n.mutex.Lock()
	n.calls = append(n.calls, method)
	f := n.onCall
	n.mutex.Unlock()
	if f == nil {
		return nil
	}
	return f(method)
}

func (n *Node) unary(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if err := n.called(method); err != nil {
		return err
	}
	return n.explain(ctx, invoke(ctx, method, request, reply, cc, options...))
}

func (n *Node) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	streamer grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	if err := n.called(method); err != nil {
		return nil, err
	}
	s, err := streamer(ctx, desc, cc, method, options...)
	return &explained{ClientStream: s, ctx: ctx, node: n}, n.explain(ctx, err)
}

type explained struct {
	grpc.ClientStream
	ctx  context.Context // the caller's context: gRPC ends the stream's own context when the stream ends
	node *Node
}

func (s *explained) SendMsg(m any) error {
	return s.node.explain(s.ctx, s.ClientStream.SendMsg(m))
}

func (s *explained) RecvMsg(m any) error {
	return s.node.explain(s.ctx, s.ClientStream.RecvMsg(m))
}

func (n *Node) explain(ctx context.Context, err error) error {
	switch code := status.Code(err); {
	case err == nil, err == io.EOF:
		return err
	case code == codes.Unavailable, code == codes.Canceled && ctx.Err() == nil:
		return &node.LostError{Node: n.Name, Err: err}
	}
	return rpcerror.FromStatus(err)
}
