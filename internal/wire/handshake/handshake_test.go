package handshake_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/handshake"
)

var hash = strings.Repeat("ab", 32)

type stream struct {
	io.Reader
	io.Writer
}

func TestBothSidesAgreeAfterNoise(t *testing.T) {
	client, server := net.Pipe()
	served := make(chan error, 1)
	go func() {
		io.WriteString(server, "Microsoft Windows [Version 10.0.20348]\r\nSWDT-AGENT/")
		served <- handshake.Serve(server, hash)
	}()
	if err := handshake.Dial(client, hash); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	// The handshake consumed nothing that follows it.
	go io.WriteString(server, "PRI")
	rest := make([]byte, 3)
	if _, err := io.ReadFull(client, rest); err != nil || string(rest) != "PRI" {
		t.Fatalf("after the handshake: %q, %v", rest, err)
	}
}

func TestDialKeepsWhatWasPrintedInstead(t *testing.T) {
	const text = "'C:\\ProgramData\\swdt' is not recognized as an internal or external command"
	err := handshake.Dial(stream{strings.NewReader(text), io.Discard}, hash)
	var none *handshake.NoAgentError
	switch {
	case !errors.As(err, &none):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, none)
	case string(none.Output) != text:
		t.Fatalf("none.Output is %v, want %v", string(none.Output), text)
	case !errors.Is(err, io.EOF):
		t.Fatalf("the error is %v, want %v", err, io.EOF)
	}
}

func TestDialRefusesAnotherAgent(t *testing.T) {
	var sent bytes.Buffer
	other := strings.Repeat("cd", 32)
	err := handshake.Dial(stream{strings.NewReader("SWDT-AGENT/1\n" + other + "\n"), &sent}, hash)
	var mismatch *handshake.HashMismatchError
	switch {
	case !errors.As(err, &mismatch):
		t.Fatalf("the error is %v, a %T, want a %T", err, err, mismatch)
	case mismatch.Got != other:
		t.Fatalf("mismatch.Got is %v, want %v", mismatch.Got, other)
	}
	if sent.Len() != 0 {
		t.Fatalf("sent %q to an agent that is not ours", sent.Bytes())
	}
}

func TestServeRefusesAStranger(t *testing.T) {
	err := handshake.Serve(stream{strings.NewReader("GET / HTTP/1.1\r\n"), io.Discard}, hash)
	if !errors.Is(err, handshake.ErrRefused) {
		t.Fatalf("the error is %v, want %v", err, handshake.ErrRefused)
	}
}

func FuzzDial(f *testing.F) {
	f.Add([]byte("SWDT-AGENT/1\n" + hash + "\n"))
	f.Add([]byte("noise SWDT-AGENT/1\nshort"))
	f.Add([]byte("SWDT-AGENT/SWDT-AGENT/1\n" + hash + "\nrest"))
	f.Fuzz(func(t *testing.T, printed []byte) {
		var sent bytes.Buffer
		r := bytes.NewReader(printed)
		err := handshake.Dial(stream{r, &sent}, hash)
		if (err == nil) != (sent.Len() > 0) {
			t.Fatalf("accepted %q with error %v", sent.Bytes(), err)
		}
		if err == nil && !bytes.Contains(printed, []byte("SWDT-AGENT/1\n"+hash+"\n")) {
			t.Fatalf("accepted %q", printed)
		}
	})
}
