//go:build linux || darwin

package console

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/ui/interrupt"
)

const panics = "SWDT_TEST_CONSOLE_PANICS"

// A panic in a goroutine of the session puts the terminal back before the process ends.
func TestAPanicPutsTheTerminalBack(t *testing.T) {
	if os.Getenv(panics) != "" {
		_, c, err := Open(context.Background(), Files{In: os.Stdin, Out: os.Stdout})
		if err != nil {
			os.Exit(3)
		}
		if os.Getenv(panics) == "here" {
			defer c.Close()
			panic("a bug")
		}
		go c.guarded(func() { panic("a bug") })
		select {}
	}
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"here", "beside"} {
		keyboard, terminal, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		before, err := term.GetState(int(terminal.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		var shown strings.Builder
		command := exec.Command(executable, "-test.run=^TestAPanicPutsTheTerminalBack$")
		command.Env = append(os.Environ(), panics+"="+where)
		command.Stdin, command.Stdout, command.Stderr = terminal, terminal, &shown
		if err := command.Run(); err == nil || !strings.Contains(shown.String(), "panic: a bug") {
			t.Errorf("%s: the process ended with %v: %s", where, err, shown.String())
		}
		after, err := term.GetState(int(terminal.Fd()))
		if err != nil || *after != *before {
			t.Errorf("%s: the terminal is not as before: %v, %v", where, after, err)
		}
		if err := errors.Join(terminal.Close(), keyboard.Close()); err != nil {
			t.Error(err)
		}
	}
}

// The escape key works even if keys cannot be sent, and a paste with single ones does not end it.
func TestTheEscapeKey(t *testing.T) {
	from, typed := io.Pipe()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	k := newKeyboard(from, end)
	ended := make(chan struct{})
	go func() { defer close(ended); k.read() }()
	for _, keys := range []string{"a\x1d", "\x1db\x1d", "\x1d", "\x1dc"} {
		if _, err := io.WriteString(typed, keys); err != nil {
			t.Fatal(err)
		}
	}
	<-ended
	var interrupted *interrupt.Error
	if !errors.As(context.Cause(ctx), &interrupted) {
		t.Errorf("the session ended with %v", context.Cause(ctx))
	}
	buffer := make([]byte, 64)
	n, err := keysUntil{k, t.Context()}.Read(buffer)
	if err != nil || string(buffer[:n]) != "a\x1d\x1db\x1d\x1d" {
		t.Errorf("keys %q, %v", buffer[:n], err)
	}
}

// Keys that were not sent yet are bounded.
func TestPendingKeysAreBounded(t *testing.T) {
	from, typed := io.Pipe()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	k := newKeyboard(from, end)
	go k.read()
	wrote := make(chan int, 1)
	go func() {
		n, _ := typed.Write(make([]byte, 4*mostPending))
		wrote <- n
	}()
	got, buffer := 0, make([]byte, 64<<10)
	for got < 4*mostPending {
		n, err := keysUntil{k, ctx}.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		got += n
		k.mu.Lock()
		if len(k.pending) > mostPending+32<<10 {
			t.Errorf("%d bytes are pending", len(k.pending))
		}
		k.mu.Unlock()
	}
	if n := <-wrote; n != 4*mostPending {
		t.Errorf("%d bytes were read", n)
	}
	if err := typed.Close(); err != nil {
		t.Error(err)
	}
}
