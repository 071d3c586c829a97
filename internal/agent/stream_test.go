package agent_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/agent"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/wire/fault"
	"github.com/swdt-dev/swdt/internal/wire/handshake"
)

func TestMainServesUntilStdinEnds(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	stdin, toAgent := io.Pipe()
	fromAgent, stdout := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		machine := agent.Machine{Platform: m.Process("agent"), Hash: agentHash}
		code <- agent.Main(context.Background(), machine, nil, stdin, stdout, &stderr)
	}()
	if err := handshake.Dial(struct {
		io.Reader
		io.Writer
	}{fromAgent, toAgent}, agentHash); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, fromAgent)
	toAgent.Close()
	if c := <-code; c != 0 || stderr.Len() != 0 {
		t.Fatalf("exit code %d, stderr %q", c, stderr.String())
	}
}

func TestMainRefusesAStranger(t *testing.T) {
	m := newMachine(t, simulated.Options{})
	var stdout, stderr bytes.Buffer
	machine := agent.Machine{Platform: m.Process("agent"), Hash: agentHash}
	code := agent.Main(context.Background(), machine, nil, strings.NewReader("GET / HTTP/1.1\r\n\r\n"), &stdout,
		&stderr)
	if code != 1 || !strings.Contains(stderr.String(), "not swdt") {
		t.Fatalf("exit code %d, stderr %q", code, stderr.String())
	}
	if want := "SWDT-AGENT/1\n" + agentHash + "\n"; stdout.String() != want {
		t.Fatalf("stdout %q", stdout.String())
	}
}

func TestMainExplainsItselfToPeople(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := agent.Main(context.Background(), agent.Machine{}, []string{"--help"},
		strings.NewReader(""), &stdout, &stderr)
	switch {
	case code != 2:
		t.Fatalf("code is %v, want 2", code)
	case stdout.Len() != 0:
		t.Fatalf("stdout.Len() is %v, want 0", stdout.Len())
	case !strings.Contains(stderr.String(), "usage: swdt-agent"):
		t.Fatalf("stderr.String() lacks %q:\n%s", "usage: swdt-agent", stderr.String())
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	for _, when := range []string{"before the handshake", "while a call runs"} {
		t.Run(when, func(t *testing.T) {
			m := newMachine(t, simulated.Options{})
			near, far := net.Pipe()
			defer near.Close()
			ctx, cancel := context.WithCancel(context.Background())
			served := make(chan error, 1)
			go func() {
				served <- agent.Serve(ctx, agent.Machine{Platform: m.Process("agent"), Hash: agentHash}, far)
			}()
			if when == "while a call runs" {
				if err := handshake.Dial(near, agentHash); err != nil {
					t.Fatal(err)
				}
				rpc := dial(t, near)
				defer rpc.Close()
				write, err := agentv1.NewFilesClient(rpc).Write(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				sendHeader(t, write, &agentv1.WriteHeader{Path: `C:\f`, Size: 10})
			}
			cancel()
			if err := <-served; !errors.Is(err, context.Canceled) {
				t.Fatalf("the error is %v, want %v", err, context.Canceled)
			}
		})
	}
}

// The bytes after the handshake may be arbitrary.
func TestServeSurvivesMalformedFrames(t *testing.T) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for name, sent := range map[string]string{
		"nothing":           "",
		"half of a preface": preface[:10],
		"another protocol":  "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"no settings":       preface + "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678",
		"a huge frame":      preface + "\xff\xff\xff\x00\x00\x00\x00\x00\x01",
		"half of a frame":   preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x10\x00",
		"data of no stream": preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" +
			"\x00\x00\x01\x00\x00\x00\x00\x00\x07x",
		"headers of nothing": preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" +
			"\x00\x00\x04\x01\x05\x00\x00\x00\x01\xff\xff\xff\xff",
		"noise": strings.Repeat("\x5a\xa5", 5000),
	} {
		t.Run(name, func(t *testing.T) { talk(t, []byte(sent)) })
	}
}

func FuzzServe(f *testing.F) {
	f.Add([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, sent []byte) { talk(t, sent) })
}

// talk performs the handshake, sends bytes and closes the connection. The
// session must end without an error, since a disconnect is not a failure of the
// agent.
func talk(t *testing.T, sent []byte) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- agent.Serve(context.Background(), agent.Machine{Platform: m.Process("agent"), Hash: agentHash}, far)
	}()
	if err := handshake.Dial(near, agentHash); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(io.Discard, near)
	}()
	near.Write(sent) // the agent may close the connection meanwhile
	near.Close()
	if err := <-served; err != nil {
		t.Fatalf("the session ended with %v", err)
	}
	<-read
}

// sshd keeps the session of a machine that is suspended. The agent must not,
// since it may hold the lock.
func TestServeEndsWhenTheOtherSideIsSilent(t *testing.T) {
	for _, test := range []struct {
		name  string
		until func(t *testing.T, near net.Conn)
	}{
		{"before the handshake", func(*testing.T, net.Conn) {}},
		{"after the handshake", func(t *testing.T, near net.Conn) {
			if err := handshake.Dial(near, agentHash); err != nil {
				t.Error(err)
			}
		}},
		{"in the middle of HTTP/2", func(t *testing.T, near net.Conn) {
			if err := handshake.Dial(near, agentHash); err != nil {
				t.Error(err)
			}
			near.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
		}},
	} {
		for _, reads := range []bool{false, true} {
			name := test.name + ", never reading"
			if reads {
				name = test.name + ", but reading"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					near, far := net.Pipe()
					done := make(chan struct{})
					go func() {
						defer close(done)
						test.until(t, near)
						if reads {
							io.Copy(io.Discard, near)
						}
					}()
					machine := agent.Machine{Platform: &platform.Platform{Files: noFiles{}}, Hash: agentHash}
					err := agent.Serve(t.Context(), machine, far)
					if test.name == "before the handshake" && !errors.Is(err, handshake.ErrRefused) {
						t.Errorf("got %v", err)
					}
					near.Close()
					<-done
				})
			})
		}
	}
}

// A client that requests much data and reads none must not keep the agent alive
// when stdin ends, although a write to stdout is then blocked forever.
func TestMainEndsWhenTheOtherSideStopsReading(t *testing.T) {
	synctest.Test(t, stopReading)
}

func stopReading(t *testing.T) {
	m := newMachine(t, simulated.Options{Preset: simulated.Minimal})
	put(t, m, `C:\big`, bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16))
	stdin, toAgent := io.Pipe()
	fromAgent, stdout := io.Pipe()
	code := make(chan int, 1)
	go func() {
		machine := agent.Machine{Platform: m.Process("agent"), Hash: agentHash}
		code <- agent.Main(context.Background(), machine, nil, stdin, stdout, io.Discard)
	}()
	near := &halves{Reader: fromAgent, Writer: toAgent, shut: make(chan struct{}), end: toAgent.Close}
	if err := handshake.Dial(near, agentHash); err != nil {
		t.Fatal(err)
	}
	rpc := dial(t, near)
	defer rpc.Close()
	read, err := agentv1.NewFilesClient(rpc).Read(t.Context(), &agentv1.ReadRequest{Path: `C:\big`})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read.Recv(); err != nil {
		t.Fatal(err)
	}
	close(near.shut)
	toAgent.Close()
	if c := <-code; c != 0 {
		t.Fatalf("exit code %d", c)
	}
}

// halves is a connection of two pipes; it reads no more after it is shut.
type halves struct {
	net.Conn // for the methods that are not used
	io.Reader
	io.Writer
	shut chan struct{}
	end  func() error
}

func (h *halves) Read(p []byte) (int, error) {
	select {
	case <-h.shut:
		return 0, io.EOF
	default:
		return h.Reader.Read(p)
	}
}

func (h *halves) Write(p []byte) (int, error)      { return h.Writer.Write(p) }
func (h *halves) Close() error                     { return h.end() }
func (h *halves) SetDeadline(time.Time) error      { return nil }
func (h *halves) SetReadDeadline(time.Time) error  { return nil }
func (h *halves) SetWriteDeadline(time.Time) error { return nil }
func (h *halves) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (h *halves) RemoteAddr() net.Addr             { return &net.UnixAddr{} }

// noFiles is the file system of a machine that was never set up.
type noFiles struct{ platform.Files }

func (noFiles) Stat(string) (platform.FileInfo, error) { return platform.FileInfo{}, fault.ErrNotExist }
func (noFiles) Open(string) (io.ReadSeekCloser, error) { return nil, fault.ErrNotExist }
