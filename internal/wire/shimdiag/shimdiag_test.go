package shimdiag_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/shimdiag"
)

// The bytes are those that the protocol's documents give: a header of length, stream 1, type and flags, and the messages of
// ttrpc's request.proto and shimdiag.proto.
func TestTheRequestIsThatOfTheProtocol(t *testing.T) {
	const service, method = "containerd.runhcs.v1.diag.ShimDiag", "DiagStacks"
	want := "00000030" + "00000001" + "0100" + "0a22" + hex.EncodeToString([]byte(service)) + "120a" + hex.EncodeToString([]byte(method))
	var got []byte
	text, err := asked(t, t.Context(), func(request []byte) []byte {
		got = request
		return frame("120d" + "0a0b" + hex.EncodeToString([]byte("goroutine 1")))
	})
	if err != nil || text != "goroutine 1" || hex.EncodeToString(got) != want {
		t.Errorf("%q, %v\n%x\n%s", text, err, got, want)
	}
}

func TestReplies(t *testing.T) {
	var refused *shimdiag.RefusedError
	_, err := asked(t, t.Context(), func([]byte) []byte { return frame("0a06" + "080c" + "1202" + "6e6f") })
	if !errors.As(err, &refused) || refused.Text != "no" {
		t.Error(err)
	}
	for name, reply := range map[string][]byte{
		"nothing": {}, "half a header": {0, 0, 0}, "too large": {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 2, 0},
		"another stream": {0, 0, 0, 0, 0, 0, 0, 3, 2, 0}, "a request": {0, 0, 0, 0, 0, 0, 0, 1, 1, 0},
		"damaged": frame("12ff"), "endless": bytes.Repeat([]byte{0xff}, 64), "cut": frame("120d0a0b41")[:12], "HTTP": []byte("HTTP/1.1 200 OK\r\n\r\n"),
	} {
		if text, err := asked(t, t.Context(), func([]byte) []byte { return reply }); err == nil {
			t.Errorf("%s: %q", name, text)
		}
	}
	if text, err := asked(t, t.Context(), func([]byte) []byte { return frame("") }); err != nil || text != "" {
		t.Errorf("an empty reply: %q, %v", text, err)
	}
}

func TestASilentShimEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := asked(t, ctx, func([]byte) []byte {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestNamesOfPipes(t *testing.T) {
	const want = `\\.\pipe\ProtectedPrefix\Administrators\containerd-shim-k8s.io-0123abc-pipe`
	if path, ok := shimdiag.Pipe("k8s.io", "0123abc"); !ok || path != want {
		t.Error(path)
	}
	for _, id := range []string{"", `..\x`, "a/b", "a b", "a\x00", strings.Repeat("a", 200)} {
		if path, ok := shimdiag.Pipe("k8s.io", id); ok {
			t.Errorf("%q: %s", id, path)
		}
	}
}

// frame returns a response on stream 1.
func frame(payload string) []byte {
	body, err := hex.DecodeString(payload)
	if err != nil {
		panic(err)
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	return append(append(out, 0, 0, 0, 1, 2, 0), body...)
}

// asked calls Stacks with a peer that reads the request, replies and closes; if the reply is nil, the peer stays silent.
func asked(t *testing.T, ctx context.Context, answer func(request []byte) []byte) (string, error) {
	t.Helper()
	near, far := net.Pipe()
	go func() {
		header := make([]byte, 10)
		if _, err := io.ReadFull(far, header); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header))
		if _, err := io.ReadFull(far, body); err != nil {
			return
		}
		if reply := answer(append(header, body...)); reply != nil {
			_, _ = far.Write(reply)
			_ = far.Close()
		}
	}()
	defer far.Close()
	return shimdiag.Stacks(ctx, near)
}
