package platformtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
)

// seated is a command that runs on a terminal of its own.
type seated struct {
	cancel  context.CancelFunc
	keys    *io.PipeWriter
	resized chan platform.TerminalSize
	done    chan struct{}
	code    int
	err     error

	mu    sync.Mutex
	shown bytes.Buffer
	more  chan struct{}
}

// Write receives what the terminal shows.
func (s *seated) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown.Write(p)
	select {
	case s.more <- struct{}{}:
	default: // the reader looks at all of it
	}
	return len(p), nil
}

// drawing matches the control sequences with which a console draws.
var drawing = regexp.MustCompile("\x1b(\\[[0-9;?]*[A-Za-z]|\\][^\a\x1b]*(\a|\x1b\\\\)|[()][A-Z0-9]|[=>78])|\a")

// text returns what the terminal has shown, without control sequences.
func (s *seated) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return drawing.ReplaceAllString(s.shown.String(), "")
}

// sit starts the fixture's program on a terminal.
func (f Fixture) sit(t *testing.T, size platform.TerminalSize, words ...string) *seated {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	in, keys := io.Pipe()
	s := &seated{cancel: cancel, keys: keys, resized: make(chan platform.TerminalSize), done: make(chan struct{}),
		more: make(chan struct{}, 1)}
	c := f.command(words...)
	c.Stdin, c.Stdout = in, s
	c.Terminal = &platform.Terminal{Size: size, Resized: s.resized}
	go func() {
		defer close(s.done)
		defer in.Close()
		s.code, s.err = f.Platform.Processes.Run(ctx, c)
	}()
	t.Cleanup(func() {
		cancel()
		_ = keys.Close()
		s.wait(t)
	})
	return s
}

// await waits until the terminal shows a text.
func (s *seated) await(t *testing.T, text string) {
	t.Helper()
	limit := time.After(terminalLimit)
	for !strings.Contains(s.text(), text) {
		select {
		case <-s.more:
		case <-s.done:
			if !strings.Contains(s.text(), text) {
				t.Fatalf("the command ended (%d, %v) before the terminal showed %q: %q", s.code, s.err, text, s.text())
			}
		case <-limit:
			t.Fatalf("never: the terminal shows %q: %q", text, s.text())
		}
	}
}

// terminalLimit limits every wait for a terminal.
const terminalLimit = 2 * time.Minute

func (s *seated) wait(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(terminalLimit):
		t.Fatal("never: the command on the terminal has ended")
	}
}

func (s *seated) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(s.keys, keys); err != nil {
		t.Fatalf("press %q: %v", keys, err)
	}
}

// expect waits for the end of the command.
func (s *seated) expect(t *testing.T, code int) {
	t.Helper()
	s.wait(t)
	if s.err != nil || s.code != code {
		t.Errorf("the command ended with %#x, %v; want exit code %#x", s.code, s.err, code)
	}
}

func testTerminal(t *testing.T, fixture func(*testing.T) Fixture) {
	need(t, fixture(t).Has.Terminal, "a terminal for programs")
	size := platform.TerminalSize{Columns: 91, Rows: 31}
	t.Run("SizeAndExitCode", func(t *testing.T) {
		s := fixture(t).sit(t, size, "size", "exit", "7")
		s.expect(t, 7)
		s.await(t, "91x31")
	})
	t.Run("LinesAreTyped", func(t *testing.T) {
		s := fixture(t).sit(t, size, "line", "line", "exit", "0")
		s.press(t, "hello\r")
		s.await(t, "got hello")
		s.press(t, "wrong\x7f\x7f\x7f\x7f\x7fright\r")
		s.await(t, "got right")
		s.expect(t, 0)
	})
	t.Run("ResizeArrives", func(t *testing.T) {
		s := fixture(t).sit(t, size, "line", "awaitsize", "120x40", "exit", "0")
		s.press(t, "begin\r")
		s.await(t, "got begin")
		select {
		case s.resized <- platform.TerminalSize{Columns: 120, Rows: 40}:
		case <-s.done:
		}
		s.await(t, "resized")
		s.expect(t, 0)
	})
	t.Run("CtrlCEndsAProgram", func(t *testing.T) {
		s := fixture(t).sit(t, size, "line", "hang")
		s.press(t, "begin\r")
		s.await(t, "got begin")
		s.press(t, "\x03")
		s.expect(t, platform.ExitInterrupted)
	})
	t.Run("TheEndOfStdinHangsUp", func(t *testing.T) {
		s := fixture(t).sit(t, size, "line", "hang")
		s.press(t, "begin\r")
		s.await(t, "got begin")
		check(t, s.keys.Close())
		s.wait(t)
		if s.err != nil || s.code == 0 {
			t.Errorf("the command ended with %d, %v; want an exit code", s.code, s.err)
		}
	})
	t.Run("TheEndOfTheContextKillsTheTree", func(t *testing.T) {
		f := fixture(t)
		s := f.sit(t, size, "childandwait", "hang")
		number := regexp.MustCompile(`\d+`)
		var child uint32
		eventually(t, "the child's PID is shown", func() bool {
			text := number.FindString(s.text())
			if text != "" {
				child = pid(t, text)
			}
			return text != "" && f.lists(t, child)
		})
		handle, err := f.Platform.Processes.Open(child)
		check(t, err)
		defer handle.Close()
		s.cancel()
		s.wait(t)
		if !errors.Is(s.err, context.Canceled) {
			t.Errorf("the command: %d, %v", s.code, s.err)
		}
		expectEnded(t, handle)
	})
	t.Run("AllOutputArrives", func(t *testing.T) {
		s := fixture(t).sit(t, size, "count", "2000", "exit", "0")
		s.expect(t, 0)
		s.await(t, "number 2000")
	})
	t.Run("NoSuchSize", func(t *testing.T) {
		f := fixture(t)
		for _, size := range []platform.TerminalSize{{}, {Columns: 80}, {Columns: 80, Rows: 40000}} {
			c := f.command("exit", "0")
			c.Terminal = &platform.Terminal{Size: size}
			if _, err := f.Platform.Processes.Run(t.Context(), c); err == nil {
				t.Error(fmt.Sprint("a terminal of ", size))
			}
		}
	})
}
