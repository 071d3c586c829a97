package node_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	xssh "golang.org/x/crypto/ssh"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/node/ssh/sshtest"
	"github.com/swdt-dev/swdt/internal/testing/deadline"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func bootID(t *testing.T, n *node.Node) string {
	t.Helper()
	facts, err := n.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return facts.GetBootId()
}

func TestErrorsAreThoseOfTheHost(t *testing.T) {
	ctx, pass := deadline.Context(t.Context())
	c := newFakeNode(t, faults{hangs: pass}).connect()
	_, err := c.Machine.Reboot(t.Context(), &agentv1.RebootRequest{})
	switch {
	case !errors.Is(err, fault.ErrPermission):
		t.Errorf("the error is %v, want %v", err, fault.ErrPermission)
	case err.Error() != "reboot: "+fault.ErrPermission.Error():
		t.Errorf("err.Error() is %v, want %v", err.Error(), "reboot: "+fault.ErrPermission.Error())
	}
	if _, err := c.Machine.Lock(ctx, &agentv1.LockRequest{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v, want %v", err, context.DeadlineExceeded)
	}
	var lost *node.LostError
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	switch _, err := c.Machine.Lock(ctx, &agentv1.LockRequest{}); {
	case !errors.Is(err, context.Canceled):
		t.Errorf("the error is %v, want %v", err, context.Canceled)
	case errors.As(err, &lost):
		t.Error("errors.As(err, &lost) is true, want false")
	}
}

func TestCutConnection(t *testing.T) {
	f := newFakeNode(t, faults{})
	c := f.connect()
	stream, err := c.Files.Read(t.Context(), &agentv1.ReadRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := c.Machine.Lock(context.Background(), &agentv1.LockRequest{})
		waiting <- err
	}()
	f.ssh.BreakConnections()

	_, streamErr := stream.Recv()
	_, later := c.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
	for name, err := range map[string]error{"stream": streamErr, "call": <-waiting, "later call": later} {
		var lost *node.LostError
		switch {
		case !errors.As(err, &lost):
			t.Errorf("%s: the error is %v, a %T, want a %T", name, err, err, lost)
		case !strings.HasPrefix(err.Error(), "lost the connection"):
			t.Errorf("%s: err.Error() does not begin with %q:\n%s", name, "lost the connection", err.Error())
		case errors.Is(err, io.EOF):
			t.Errorf("%s: the error is %v, want anything but %v", name, err, io.EOF)
		}
	}

	if err := c.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if bootID(t, c) != "boot-1" || c.Connections() != 2 {
		t.Errorf("%d connections", c.Connections())
	}
}

// A stream that waits while another caller reconnects fails because its connection is lost, not
// because its own caller cancelled it.
func TestAStreamIsLostWhenTheConnectionIsReplaced(t *testing.T) {
	c := newFakeNode(t, faults{}).connect()
	stream, err := c.Files.Read(t.Context(), &agentv1.ReadRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := stream.Recv()
		waiting <- err
	}()
	if err := c.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	var lost *node.LostError
	if err := <-waiting; !errors.As(err, &lost) {
		t.Errorf("the error is %v, a %T, want a %T", err, err, lost)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if stream, err = c.Files.Read(ctx, &agentv1.ReadRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := stream.Recv(); !errors.Is(err, context.Canceled) || errors.As(err, &lost) {
		t.Errorf("cancelled by its caller: got %T %v", err, err)
	}
}

func TestDyingAgentsLastWordsAreKept(t *testing.T) {
	f := newFakeNode(t, faults{lastWords: "panic: out of luck"})
	c := f.connect()
	bootID(t, c)
	f.killAgent()
	_, err := c.Machine.Lock(t.Context(), &agentv1.LockRequest{})
	var lost *node.LostError
	switch {
	case !errors.As(err, &lost):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, lost)
	case !strings.Contains(err.Error(), "exit code 9"):
		t.Fatalf("err.Error() lacks %q:\n%s", "exit code 9", err.Error())
	case !strings.Contains(err.Error(), "out of luck"):
		t.Fatalf("err.Error() lacks %q:\n%s", "out of luck", err.Error())
	}
}

func TestCloseEndsTheAgentAndCalls(t *testing.T) {
	f := newFakeNode(t, faults{})
	c := f.connect()
	bootID(t, c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal("closed twice:", err)
	}
	_, err := c.Machine.Facts(t.Context(), &agentv1.FactsRequest{})
	var lost *node.LostError
	switch {
	case !errors.As(err, &lost):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, lost)
	case !strings.Contains(err.Error(), "closed"):
		t.Fatalf("err.Error() lacks %q:\n%s", "closed", err.Error())
	}
}

func TestReconnectThatFailsCanBeTriedAgain(t *testing.T) {
	ctx, pass := deadline.Context(t.Context())
	f := newFakeNode(t, faults{hangs: pass})
	c := f.connect()
	f.setMute(true)
	var unreachable *node.UnreachableError
	if err := c.Reconnect(ctx); !errors.As(err, &unreachable) {
		t.Fatalf("the error is %v, a %T, want a %T", err, err, unreachable)
	}
	f.setMute(false)
	if err := c.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	bootID(t, c)
}

// A node whose credentials name a cluster is not reached by a program that was given none.
func TestWithoutClustersNoNodeIsReachedThroughOne(t *testing.T) {
	doc := config.Document{}
	doc.Node.Spec.Credentials.Kubernetes = &v1alpha1.ThroughKubernetes{}
	var unreachable *node.UnreachableError
	if _, err := node.Connect(t.Context(), doc, node.Options{}); !errors.As(err, &unreachable) {
		t.Errorf("the error is %v, a %T, want a %T", err, err, unreachable)
	}
}

func TestLargeMessagesAndStreams(t *testing.T) {
	c := newFakeNode(t, faults{}).connect()
	long := strings.Repeat("x", 3<<20)
	if _, err := c.Machine.Reboot(t.Context(), &agentv1.RebootRequest{Reason: long}); !errors.Is(err,
		fault.ErrPermission) {
		t.Fatalf("the error is %v, want %v", err, fault.ErrPermission)
	}
	stream, err := c.Files.Write(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	switch _, err := stream.CloseAndRecv(); {
	case err == nil:
		t.Fatal("no error, want one")
	case err == io.EOF:
		t.Fatalf("err is %v, want anything but %v", err, io.EOF)
	}
}

func TestBulkDataHasAChannelOfItsOwn(t *testing.T) {
	f := newFakeNode(t, faults{})
	c := f.connect()
	before, connections, calls := len(f.ran()), f.ssh.Accepted(), c.Calls()
	for range 2 { // the second call returns the session of the first
		bulk, err := c.Bulk(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stream, err := bulk.Read(t.Context(), &agentv1.ReadRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.ran()[before:]; !slices.Equal(got, []string{"agent"}) || f.ssh.Accepted() != connections {
		t.Errorf("bulk data ran %q on %d more connections", got, f.ssh.Accepted()-connections)
	}
	if c.Calls() != calls+2 || c.Connections() != 1 {
		t.Errorf("%d calls and %d connections counted", c.Calls()-calls, c.Connections())
	}
	bootID(t, c)

	// The session for bulk data ends with the connection; the next connection has a new one.
	old, err := c.Bulk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	var lost *node.LostError
	if _, err := old.Stat(t.Context(), &agentv1.StatRequest{}); !errors.As(err, &lost) {
		t.Errorf("the error is %v, a %T, want a %T", err, err, lost)
	}
	if _, err := c.Bulk(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Bulk(t.Context()); !errors.As(err, &lost) {
		t.Errorf("the error is %v, a %T, want a %T", err, err, lost)
	}
}

func TestWithoutASecondAgentBulkDataGoesWithTheRest(t *testing.T) {
	ctx, pass := deadline.Context(t.Context())
	f := newFakeNode(t, faults{hangs: pass})
	c := f.connect()
	f.setMute(true)
	if _, err := c.Bulk(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v, want %v", err, context.DeadlineExceeded)
	}
	bootID(t, c) // the connection still works
}

func TestAwaitReboot(t *testing.T) {
	f := newFakeNode(t, faults{})
	c := f.connect()
	old := bootID(t, c)
	f.ssh.BreakConnections()
	f.setBootID("boot-2")
	if err := c.AwaitReboot(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if got := bootID(t, c); got != "boot-2" {
		t.Errorf("got is %q, want %q", got, "boot-2")
	}
}

func TestKeyLogin(t *testing.T) {
	f := newFakeNode(t, faults{})
	key := sshtest.NewKey(t)
	jump := sshtest.Start(t, sshtest.Options{Keys: []xssh.PublicKey{key.Public()}, Forward: true})
	f.opts.KnownHosts = sshtest.Trust(t, f.ssh, jump)
	sshtest.Write(t, f.opts.HomeDir, ".ssh/id_ed25519", key.PEM(t, ""))
	f.doc.Node.Spec.Credentials.ProxyJump = "dev@" + jump.Address
	bootID(t, f.connect())
	if jump.Accepted() != 1 {
		t.Errorf("%d connections to the jump host", jump.Accepted())
	}
}
