package streaming

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// No connection leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a relay to a listener that stands for the runtime's streaming server.
type fixture struct {
	relay  *Relay
	server net.Listener
	dialed chan netip.AddrPort
}

func start(t *testing.T) *fixture {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{server: server, dialed: make(chan netip.AddrPort, 16)}
	f.relay = New(t.Context(), func(ctx context.Context, at netip.AddrPort) (Conn, error) {
		f.dialed <- at
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", server.Addr().String())
		if err != nil {
			return nil, err
		}
		return conn.(*net.TCPConn), nil
	})
	t.Cleanup(func() {
		f.relay.Close()
		server.Close()
	})
	return f
}

// open requests a URL of the relay, and returns the client's connection and the server's, from which
// the request was read.
func (f *fixture) open(t *testing.T) (client, server *net.TCPConn) {
	t.Helper()
	given, err := f.relay.Replace("http://10.0.0.1:49152/exec/token")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(given)
	if err != nil {
		t.Fatal(err)
	}
	client = f.send(t, "POST "+u.Path+" HTTP/1.1\r\n\r\n")
	conn, err := f.server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	head := make([]byte, len("POST /exec/token HTTP/1.1\r\nHost: 10.0.0.1:49152\r\n\r\n"))
	if _, err := io.ReadFull(conn, head); err != nil || !strings.HasPrefix(string(head), "POST /exec/token ") {
		t.Fatalf("the server read %q, %v", head, err)
	}
	if at := <-f.dialed; at.String() != "10.0.0.1:49152" {
		t.Errorf("dialed %s", at)
	}
	return client, conn.(*net.TCPConn)
}

// send connects to the relay and sends text.
func (f *fixture) send(t *testing.T, text string) *net.TCPConn {
	t.Helper()
	at, err := f.relay.listen()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

func TestEachDirectionEndsByItself(t *testing.T) {
	f := start(t)
	client, server := f.open(t)
	for _, d := range []struct{ to, from *net.TCPConn }{{client, server}, {server, client}} {
		if _, err := io.WriteString(d.to, "last words"); err != nil {
			t.Fatal(err)
		}
		if err := d.to.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(d.from); err != nil || string(got) != "last words" {
			t.Errorf("read %q, %v", got, err)
		}
	}
}

func TestAnIdleConnectionEnds(t *testing.T) {
	f := start(t)
	f.relay.idle = time.Millisecond
	given, err := f.relay.Replace("http://10.0.0.1:49152/exec/token")
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(strings.TrimPrefix(given, "http://"), "/")
	client := f.send(t, "POST /"+path+" HTTP/1.1\r\n\r\n")
	server, err := f.server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	// Both ends are reached, though neither side has closed. The end may be a reset.
	_, _ = io.Copy(io.Discard, server)
	if n, err := io.Copy(io.Discard, client); n > 0 {
		t.Errorf("the client read %d bytes, %v", n, err)
	}
}

// A connection that does not name a URL of the relay gets an answer, and nothing is dialled.
func TestStrangersReachNothing(t *testing.T) {
	f := start(t)
	given, err := f.relay.Replace("http://10.0.0.1:49152/exec/token")
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.Split(given, "/")[3]
	for text, want := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n":                            "400",
		"\x16\x03\x01\x00\r\n":                              "400",
		"GET /exec/token HTTP/1.1\r\n\r\n":                  "404",
		"GET /" + secret + "/exec/other HTTP/1.1\r\n\r\n":   "404",
		"GET /" + secret[1:] + "/exec/token HTTP/1.1\r\n\n": "404",
		"GET //exec/token HTTP/1.1\r\n\r\n":                 "404",
	} {
		answer, err := io.ReadAll(f.send(t, text))
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+want+" ") {
			t.Errorf("%q: answered %q, %v, want status %s", text, answer, err, want)
		}
	}
	select {
	case at := <-f.dialed:
		t.Errorf("dialed %s", at)
	default:
	}
}

func TestTheReasonOfAFailedDialIsTheAnswer(t *testing.T) {
	relay := New(t.Context(), func(context.Context, netip.AddrPort) (Conn, error) {
		return nil, errors.New("the node is \x1b[2Jaway")
	})
	defer relay.Close()
	given, err := relay.Replace("http://127.0.0.1:1/exec/token")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{relay: relay}
	answer, err := io.ReadAll(f.send(t, "GET "+strings.TrimPrefix(given, "http://"+relay.listener.Addr().String())+
		" HTTP/1.1\r\n\r\n"))
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 502 ") ||
		!strings.Contains(string(answer), `the node is \x1b[2Jaway`) {
		t.Errorf("answered %q, %v", answer, err)
	}
}

func TestOffersAreBoundedAndExpire(t *testing.T) {
	var all offers
	begun := time.Now()
	place := target{netip.MustParseAddrPort("127.0.0.1:1"), "/exec/t"}
	secrets := map[string]bool{}
	for range maxOffers {
		secret, err := all.add(place, begun)
		if err != nil || len(secret) < 26 {
			t.Fatalf("%q, %v", secret, err)
		}
		secrets[secret] = true
	}
	if len(secrets) != maxOffers {
		t.Errorf("%d different secrets of %d", len(secrets), maxOffers)
	}
	if _, err := all.add(place, begun); !errors.Is(err, ErrTooMany) {
		t.Errorf("one too many: %v", err)
	}
	later := begun.Add(offerTime + time.Second)
	for secret := range secrets {
		if got, ok := all.take(secret, place.path, later); ok {
			t.Fatalf("an expired offer was taken: %v", got)
		}
	}
	secret, err := all.add(place, later)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := all.take(secret, "/attach/t", later); ok {
		t.Errorf("another path was taken: %v", got)
	}
	if got, ok := all.take(secret, place.path, later); !ok || got != place {
		t.Errorf("took %v, %t", got, ok)
	}
	if got, ok := all.take(secret, place.path, later); ok {
		t.Errorf("taken twice: %v", got)
	}
}

func TestAClosedRelayOffersNothing(t *testing.T) {
	relay := New(t.Context(), nil)
	relay.Close()
	if given, err := relay.Replace("http://127.0.0.1:1/exec/token"); !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v", given, err)
	}
}
