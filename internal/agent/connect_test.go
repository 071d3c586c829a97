package agent_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/node"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/testing/nodetest"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// peer connects to a port of the node, and returns both ends.
func peer(t *testing.T) (conn *node.PortConn, far *net.TCPConn) {
	t.Helper()
	n := nodetest.Start(t, "win", simulated.Options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the simulated node shares loopback
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if conn, err = n.DialPort(t.Context(), netip.MustParseAddrPort(listener.Addr().String())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return conn, accepted.(*net.TCPConn)
}

func write(t *testing.T, to io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
}

func readAll(t *testing.T, from io.Reader, want string) {
	t.Helper()
	if got, err := io.ReadAll(from); err != nil || string(got) != want {
		t.Fatalf("read %q, %v, want %q", got, err, want)
	}
}

func TestThePeerEndsAfterTheCaller(t *testing.T) {
	conn, far := peer(t)
	write(t, conn, "question")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	readAll(t, far, "question")
	write(t, far, "answer")
	far.Close()
	readAll(t, conn, "answer")
}

func TestTheCallerEndsAfterThePeer(t *testing.T) {
	conn, far := peer(t)
	write(t, far, "greeting")
	if err := far.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	readAll(t, conn, "greeting")
	write(t, conn, "answer")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	readAll(t, far, "answer")
}

func TestACallerThatGoesEndsTheConnection(t *testing.T) {
	conn, far := peer(t)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	// The end may arrive as a reset.
	if n, err := far.Read(make([]byte, 1)); err == nil {
		t.Errorf("the peer read %d bytes", n)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed connection returned %v", err)
	}
}

// The agent connects to nothing but the node itself, whatever swdt asks for.
func TestOnlyPortsOfTheNodeItself(t *testing.T) {
	n := nodetest.Start(t, "win", simulated.Options{})
	for _, address := range []string{"", "127.0.0.1", "127.0.0.1:0", "localhost:80", "example.com:80",
		"169.254.169.254:80", "192.0.2.1:80", "0.0.0.0:80", "[fe80::1%eth0]:80", "127.0.0.1:80\r\nx"} {
		stream, err := n.Network.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&agentv1.ConnectRequest{Address: address}); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); !errors.Is(err, fault.ErrPermission) {
			t.Errorf("%q: %v, want %v", address, err, fault.ErrPermission)
		}
	}
}

func TestRelayedBytesAreNotPassedAsRedacted(t *testing.T) {
	n := nodetest.Start(t, "win", simulated.Options{})
	conn, err := n.DialPort(redacted(t.Context()), netip.MustParseAddrPort("127.0.0.1:80"))
	if !errors.Is(err, fault.ErrPermission) {
		t.Errorf("%v, %v, want %v", conn, err, fault.ErrPermission)
	}
}
