package agent_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
	"github.com/swdt-dev/swdt/internal/wire/packed"
	"github.com/swdt-dev/swdt/internal/wire/rpcerror"
)

var agentHash = strings.Repeat("a1", 32)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newMachine returns a simulated Windows that is switched off when the test
// ends.
func newMachine(t testing.TB, o simulated.Options) *simulated.Machine {
	t.Helper()
	m := simulated.New(o)
	t.Cleanup(m.Close)
	return m
}

// client is your machine's side of a session.
type client struct {
	agentv1.MachineClient
	services  agentv1.ServicesClient
	registry  agentv1.RegistryClient
	files     agentv1.FilesClient
	settings  agentv1.SettingsClient
	processes agentv1.ProcessesClient
	features  agentv1.FeaturesClient
	firewall  agentv1.FirewallClient
	network   agentv1.NetworkClient

	stream net.Conn // corresponds to an SSH channel
	rpc    *grpc.ClientConn
	served chan error // Serve's result
	log    *bytes.Buffer
}

// connect serves a session on a new process of the machine and connects to it.
// The session ends with the test, and must not leave anything behind.
func connect(t testing.TB, p *platform.Platform) *client {
	t.Helper()
	return connectTo(t, agent.Machine{Platform: p, Hash: agentHash})
}

func connectTo(t testing.TB, m agent.Machine) *client {
	t.Helper()
	c := &client{served: make(chan error, 1), log: &bytes.Buffer{}}
	m.Log = log.New(c.log, "", 0)
	near, far := net.Pipe()
	c.stream = near
	go func() { c.served <- agent.Serve(context.Background(), m, far) }()
	if err := handshake.Dial(near, m.Hash); err != nil {
		t.Fatal(err)
	}
	c.rpc = dial(t, near)
	c.clients()
	t.Cleanup(func() { c.close(t) })
	return c
}

// clients creates the gRPC clients of c's connection.
func (c *client) clients() {
	c.MachineClient = agentv1.NewMachineClient(c.rpc)
	c.services = agentv1.NewServicesClient(c.rpc)
	c.registry = agentv1.NewRegistryClient(c.rpc)
	c.files = agentv1.NewFilesClient(c.rpc)
	c.settings = agentv1.NewSettingsClient(c.rpc)
	c.processes = agentv1.NewProcessesClient(c.rpc)
	c.features = agentv1.NewFeaturesClient(c.rpc)
	c.firewall = agentv1.NewFirewallClient(c.rpc)
	c.network = agentv1.NewNetworkClient(c.rpc)
}

func dial(t testing.TB, stream net.Conn) *grpc.ClientConn {
	t.Helper()
	streams := make(chan net.Conn, 1)
	streams <- stream
	rpc, err := grpc.NewClient("passthrough:///node",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithIdleTimeout(0), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithStreamInterceptor(packed.Client),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case s := <-streams:
				return s, nil
			default:
				return nil, errors.New("there is one stream only")
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	return rpc
}

// close ends the session as swdt does, and waits until Serve has returned.
func (c *client) close(t testing.TB) {
	t.Helper()
	if c.served == nil {
		return
	}
	c.rpc.Close()
	c.stream.Close()
	if err := <-c.served; err != nil {
		t.Errorf("the session ended with %v", err)
	}
	c.served = nil
}

// is reports whether an error received from the agent is target.
func is(err, target error) bool { return errors.Is(rpcerror.FromStatus(err), target) }

func TestFacts(t *testing.T) {
	m := newMachine(t, simulated.Options{Hostname: "win-7"})
	facts, err := connect(t, m.Process("agent")).Facts(t.Context(), &agentv1.FactsRequest{})
	switch {
	case err != nil:
		t.Fatal(err)
	case facts.GetHostname() != "win-7":
		t.Fatalf("facts.GetHostname() is %q, want %q", facts.GetHostname(), "win-7")
	case facts.GetBootId() == "":
		t.Fatal("facts.GetBootId() is empty")
	case facts.GetSimulated() != agentv1.Simulation_SIMULATION_SIMULATED:
		t.Fatalf("facts.GetSimulated() is %v, want simulated", facts.GetSimulated())
	}
}

func TestASessionThatOnlyLooksWritesNothing(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	m.ForgetOperations()
	c := connect(t, m.Process("agent"))
	ctx := t.Context()
	calls := []func() error{
		func() error { _, err := c.Facts(ctx, &agentv1.FactsRequest{}); return err },
		func() error { _, err := c.services.List(ctx, &agentv1.ListServicesRequest{}); return err },
		func() error { _, err := c.services.Get(ctx, &agentv1.GetServiceRequest{Name: "kubelet"}); return err },
		func() error { _, err := c.files.List(ctx, &agentv1.ListFilesRequest{Path: `C:\`}); return err },
		func() error { _, err := c.files.Hash(ctx, &agentv1.HashRequest{Path: `C:\k\kubelet.exe`}); return err },
		func() error { _, err := c.settings.GetHosts(ctx, &agentv1.GetHostsRequest{}); return err },
		func() error { _, err := c.settings.GetEnvironment(ctx, &agentv1.GetEnvironmentRequest{}); return err },
		func() error { _, err := c.processes.List(ctx, &agentv1.ListProcessesRequest{}); return err },
		func() error { _, err := c.firewall.List(ctx, &agentv1.ListFirewallRulesRequest{}); return err },
		func() error { _, err := c.Unlock(ctx, &agentv1.UnlockRequest{}); return err },
	}
	for i, call := range calls {
		if err := call(); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	c.close(t)
	for _, op := range m.Operations() {
		if op.Process == "agent" {
			t.Errorf("the agent did %s", op)
		}
	}
}

func TestTheLockIsTheSessions(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	first, second := connect(t, m.Process("first")), connect(t, m.Process("second"))
	ask := &agentv1.LockRequest{Holder: "ann@laptop: swdt push"}
	for range 2 { // the holder may lock again
		if _, err := first.Lock(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	_, err := second.Lock(t.Context(), &agentv1.LockRequest{Holder: "bob"})
	var locked *fault.LockedError
	switch {
	case !errors.As(rpcerror.FromStatus(err), &locked):
		t.Fatalf("the error is %v, a %T, want a %T", rpcerror.FromStatus(err), rpcerror.FromStatus(err), locked)
	case string(locked.Holder) != ask.GetHolder():
		t.Fatalf("locked.Holder is %v, want %v", string(locked.Holder), ask.GetHolder())
	}
	if _, err := first.Unlock(t.Context(), &agentv1.UnlockRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Lock(t.Context(), &agentv1.LockRequest{Holder: "bob"}); err != nil {
		t.Fatalf("after Unlock: %v", err)
	}
	second.close(t)
	if _, err := first.Lock(t.Context(), ask); err != nil {
		t.Fatalf("after the end of the other session: %v", err)
	}
}

// A lock whose release fails is still the session's, and ends with the session.
func TestALockThatCannotBeReleasedEndsWithItsSession(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	first, second := connect(t, m.Process("first")), connect(t, m.Process("second"))
	if _, err := first.Lock(t.Context(), &agentv1.LockRequest{Holder: "ann"}); err != nil {
		t.Fatal(err)
	}
	var failed atomic.Bool
	m.OnOperation(func(op simulated.Operation) simulated.Verdict {
		if op.Kind == simulated.OpUnlock && failed.CompareAndSwap(false, true) {
			return simulated.Fail(fault.ErrPermission)
		}
		return simulated.Continue()
	})
	if _, err := first.Unlock(t.Context(), &agentv1.UnlockRequest{}); !is(err, fault.ErrPermission) {
		t.Fatalf("Unlock: %v, want that it is not permitted", err)
	}
	if _, err := second.Lock(t.Context(), &agentv1.LockRequest{Holder: "bob"}); err == nil {
		t.Fatal("two sessions hold the lock")
	}
	first.close(t)
	if _, err := second.Lock(t.Context(), &agentv1.LockRequest{Holder: "bob"}); err != nil {
		t.Fatalf("after the end of the session: %v", err)
	}
}

func TestErrorsKeepTheirKind(t *testing.T) {
	c := connect(t, newMachine(t, simulated.Options{}).Process("agent"))
	ctx := t.Context()
	_, err := c.files.Stat(ctx, &agentv1.StatRequest{Path: `C:\none`})
	if !is(err, fault.ErrNotExist) {
		t.Errorf("Stat: %v", err)
	}
	_, err = c.services.Get(ctx, &agentv1.GetServiceRequest{Name: "none"})
	if !is(err, fault.ErrNoService) {
		t.Errorf("Get: %v", err)
	}
	_, err = c.files.Hash(ctx, &agentv1.HashRequest{Path: `C:\Windows`})
	if !is(err, fault.ErrIsDirectory) {
		t.Errorf("Hash: %v", err)
	}
	_, err = c.features.Get(ctx, &agentv1.GetFeaturesRequest{Names: []string{"No-Such-Feature"}})
	if !is(err, fault.ErrNotExist) || !strings.Contains(err.Error(), "No-Such-Feature") {
		t.Errorf("features: %v", err)
	}
}

type panicking struct{ platform.Machine }

func (panicking) Facts(context.Context) (platform.Facts, error) { panic("no facts today") }

type panickingFiles struct{ platform.Files }

func (panickingFiles) Open(path string) (io.ReadSeekCloser, error) {
	if strings.Contains(path, "panic") {
		panic("no file today")
	}
	return nil, fault.ErrNotExist
}

func TestAPanicIsOneCallsErrorAndLogged(t *testing.T) {
	h := *newMachine(t, simulated.Options{}).Process("agent")
	h.Machine, h.Files = panicking{h.Machine}, panickingFiles{h.Files}
	c := connect(t, &h)
	switch _, err := c.Facts(t.Context(), &agentv1.FactsRequest{}); {
	case err == nil:
		t.Fatal("no error, want one")
	case !strings.Contains(err.Error(), "no facts today"):
		t.Fatalf("err.Error() lacks %q:\n%s", "no facts today", err.Error())
	}
	read, err := c.files.Read(t.Context(), &agentv1.ReadRequest{Path: `C:\panic`})
	if err == nil {
		_, err = read.Recv()
	}
	switch {
	case err == nil:
		t.Fatal("no error, want one")
	case !strings.Contains(err.Error(), "no file today"):
		t.Fatalf("err.Error() lacks %q:\n%s", "no file today", err.Error())
	}
	if _, err := c.services.List(t.Context(), &agentv1.ListServicesRequest{}); err != nil {
		t.Fatalf("the session is dead: %v", err)
	}
	c.close(t)
	if !strings.Contains(c.log.String(), "no facts today") || !strings.Contains(c.log.String(), "session_test.go") {
		t.Fatalf("logged:\n%s", c.log)
	}
}

func TestRebootEndsTheSession(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	c := connect(t, m.Process("agent"))
	before, err := c.Facts(t.Context(), &agentv1.FactsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reboot(t.Context(), &agentv1.RebootRequest{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	for ctx := t.Context(); ; { // the old session's process dies with the old boot
		if _, err := c.Facts(ctx, &agentv1.FactsRequest{}); err != nil {
			break
		}
	}
	if err := m.AwaitUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := connect(t, m.Process("agent")).Facts(t.Context(), &agentv1.FactsRequest{})
	switch {
	case err != nil:
		t.Fatal(err)
	case after.GetBootId() == before.GetBootId():
		t.Fatalf("after.GetBootId() is %v, want anything but %v", after.GetBootId(), before.GetBootId())
	}
}
