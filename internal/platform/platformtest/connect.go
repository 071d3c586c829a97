package platformtest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// testConnect checks that both directions of a connection end separately, and that only addresses of
// the machine itself are dialled.
func testConnect(t *testing.T, f Fixture) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	served := make(chan error, 1)
	go func() { served <- answerAtTheEnd(listener) }()
	at := netip.MustParseAddrPort(listener.Addr().String())
	conn, err := f.Platform.Network.Connect(t.Context(), at)
	check(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("hello"))
	check(t, err)
	check(t, conn.CloseWrite())
	answer, err := io.ReadAll(conn)
	check(t, err)
	check(t, <-served)
	if string(answer) != "hello, the end" {
		t.Errorf("answer is %q, want %q", answer, "hello, the end")
	}
	check(t, listener.Close())
	if conn, err := f.Platform.Network.Connect(t.Context(), at); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("no process listens: %v, %v", conn, err)
	}
	// Addresses of documentation, of a cloud's metadata service, of all interfaces, of a broadcast.
	for _, address := range []string{"192.0.2.1:80", "169.254.169.254:80", "0.0.0.0:1", "[::]:1", "255.255.255.255:1",
		"[2001:db8::1]:80", "[::ffff:192.0.2.1]:80"} {
		conn, err := f.Platform.Network.Connect(t.Context(), netip.MustParseAddrPort(address))
		if !errors.Is(err, fault.ErrPermission) {
			t.Errorf("%s: %v, %v", address, conn, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if conn, err := f.Platform.Network.Connect(ctx, at); err == nil {
		t.Errorf("after it was cancelled: %v", conn)
	}
}

// answerAtTheEnd reads one connection to its end and then answers.
func answerAtTheEnd(listener net.Listener) error {
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	if err != nil {
		return err
	}
	_, err = conn.Write(append(text, ", the end"...))
	return err
}
