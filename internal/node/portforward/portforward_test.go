package portforward

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Port{
		"10250": {10250, 10250}, "9000:10250": {9000, 10250}, ":10250": {0, 10250}, "0:10250": {0, 10250}, "65535": {65535, 65535},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", ":", ":0", "1:0", "65536", "70000:1", "kubelet", "1:2:3", "-1", "1:-2", "+1", " 1"} {
		if got, err := Parse(text); !errors.As(err, new(*FormatError)) {
			t.Errorf("%q: %v, %v, want a *FormatError", text, got, err)
		}
	}
}

func TestListenIsOnLoopbackAlone(t *testing.T) {
	listener, err := Listen(t.Context(), Port{node: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	at := listener.Addr().(*net.TCPAddr)
	if !at.IP.IsLoopback() {
		t.Errorf("listens at %s", at)
	}
	again, err := Parse(strconv.Itoa(at.Port))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Listen(t.Context(), again); !errors.As(err, new(*LocalPortError)) {
		t.Errorf("a second listener: %v, %v", second, err)
	}
}

// A port that can accept no connection any more ends the command, with its other ports.
func TestServeEndsWithAPortThatFails(t *testing.T) {
	var forwards []Forward
	for range 2 {
		p := Port{node: 1}
		listener, err := Listen(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		forwards = append(forwards, Forward{p, listener})
	}
	if err := forwards[0].Listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), forwards[:1], nil, ui.Discard{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("one port: %v", err)
	}
	if err := Serve(t.Context(), forwards, nil, ui.Discard{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("with another one: %v", err)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	listener, err := Listen(t.Context(), Port{node: 1})
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("the user has pressed Ctrl-C")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := Serve(ctx, []Forward{{Port{node: 1}, listener}}, nil, ui.Discard{}); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
}
