//go:build linux || darwin

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/platform/simulated"
	"github.com/swdt-dev/swdt/internal/ui"
)

// typist is the user at the terminal of a `swdt push --watch`.
type typist struct {
	*workplace
	keyboard *os.File
	terminal *os.File
	screen   *transcript
	stdout   *transcript
	before   *term.State
	code     chan int
}

func (w *workplace) sit() *typist {
	w.t.Helper()
	keyboard, terminal, err := pty.Open()
	if err != nil {
		w.t.Fatal(err)
	}
	p := &typist{workplace: w, keyboard: keyboard, terminal: terminal, screen: newTranscript(),
		stdout: newTranscript(), code: make(chan int, 1)}
	if p.before, err = term.GetState(int(terminal.Fd())); err != nil {
		w.t.Fatal(err)
	}
	shown := make(chan error, 1)
	go func() {
		_, err := io.Copy(p.screen, keyboard)
		shown <- err
	}()
	ctx, cancel := context.WithCancel(context.Background())
	args := []string{"push", "--watch", "-c", filepath.Join(w.folder, "swdt.yaml")}
	environment := cli.Environment{Agent: agent, Getenv: func(string) string { return "" }}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.code <- cli.Run(ctx, ui.Streams{In: terminal, Out: p.stdout, Err: terminal}, args, environment)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-ended
		p.press("\n") // ends the pending read, which is the last use of the terminal
		if err := terminal.Close(); err != nil {
			w.t.Error(err)
		}
		if err := <-shown; err != nil && !errors.Is(err, syscall.EIO) {
			w.t.Error(err)
		}
		if err := keyboard.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return p
}

func (p *typist) press(key string) {
	p.t.Helper()
	if _, err := p.keyboard.WriteString(key); err != nil {
		p.t.Fatal(err)
	}
}

// live checks that the node has this build of kubelet.
func (p *typist) live(want simulated.BinarySpec) {
	p.t.Helper()
	got, err := p.machine.ReadFile(`C:\k\kubelet.exe`)
	if err != nil || !bytes.Equal(got, simulated.Binary(want)) {
		p.t.Errorf("another kubelet than %s is on the node (%v): %s%s", want.Version, err, p.stdout, p.screen)
	}
}

func TestWatchKeys(t *testing.T) {
	w := newWorkplace(t)
	w.build("1.0.0")
	p := w.sit()
	p.screen.await(t, `watching .*; r push again, b roll back, l log lines, q quit`, 1)
	p.stdout.await(t, `^\d\d:\d\d:\d\d kubelet  .*healthy`, 1)

	newer := simulated.BinarySpec{Name: "kubelet", Version: "1.0.1"}
	w.replace("kubelet.exe", newer)
	p.stdout.await(t, `^\d\d:\d\d:\d\d kubelet  .*healthy`, 2)
	p.live(newer)

	p.press("b")
	p.stdout.await(t, `^\d\d:\d\d:\d\d kubelet  .*`, 3)
	p.live(simulated.BinarySpec{Name: "kubelet", Version: "1.0.0"})

	p.press("R") // with the shift key too
	p.stdout.await(t, `^\d\d:\d\d:\d\d kubelet  .*`, 4)
	p.live(newer)

	p.press("l")
	p.screen.await(t, `^kubelet, .*:`, 1)
	p.press("x") // x has no meaning
	p.press("q")
	select {
	case code := <-p.code:
		if code != 0 {
			t.Errorf("exit code %d: %s", code, p.screen)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("q did not end it: %s", p.screen)
	}
	after, err := term.GetState(int(p.terminal.Fd()))
	if err != nil || *after != *p.before {
		t.Errorf("the terminal is not as it was: %v, %v", after, err)
	}
	t.Logf("%s\n%s", p.stdout, p.screen)
}
