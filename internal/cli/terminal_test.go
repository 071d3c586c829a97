//go:build linux || darwin

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

// terminal is a terminal with a user.
type terminal struct {
	t        *testing.T
	keyboard *os.File // the user's end
	*os.File          // the command's end

	mutex   sync.Mutex
	shown   bytes.Buffer
	more    chan struct{}
	ended   chan struct{}
	columns uint16
}

func newTerminal(t *testing.T, rows, columns uint16) *terminal {
	t.Helper()
	keyboard, screen, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, keyboard: keyboard, File: screen, more: make(chan struct{}, 1), ended: make(chan struct{}),
		columns: columns}
	if err := pty.Setsize(keyboard, &pty.Winsize{Rows: rows, Cols: columns}); err != nil {
		t.Fatal(err)
	}
	go term.watch()
	t.Cleanup(func() {
		term.hangUp()
		if err := keyboard.Close(); err != nil {
			t.Error(err)
		}
	})
	return term
}

func (term *terminal) watch() {
	defer close(term.ended)
	buffer := make([]byte, 4096)
	for {
		n, err := term.keyboard.Read(buffer)
		term.mutex.Lock()
		term.shown.Write(buffer[:n])
		term.mutex.Unlock()
		select {
		case term.more <- struct{}{}:
		default: // the state is checked in any case
		}
		if err != nil {
			if !errors.Is(err, syscall.EIO) && !errors.Is(err, io.EOF) {
				term.t.Error(err)
			}
			return
		}
	}
}

// hangUp closes the command's end and returns everything that was shown.
func (term *terminal) hangUp() string {
	_ = term.Close() // it may be closed already
	<-term.ended
	return term.text()
}

// press types keys. After a live table that reads keys, it ends the pending read, which
// would keep the terminal open.
func (term *terminal) press(keys string) {
	term.t.Helper()
	if _, err := term.keyboard.WriteString(keys); err != nil {
		term.t.Error(err)
	}
}

func (term *terminal) text() string {
	term.mutex.Lock()
	defer term.mutex.Unlock()
	return term.shown.String()
}

// hung is the time after which an awaited event will not happen any more.
const hung = 2 * time.Minute

// await waits until the shown text meets the condition.
func (term *terminal) await(what string, so func(text string) bool) {
	term.t.Helper()
	limit := time.After(hung)
	for !so(term.text()) {
		select {
		case <-term.more:
		case <-term.ended:
			term.t.Fatalf("the terminal ended before %s:\n%q", what, term.text())
		case <-limit:
			term.t.Fatalf("%s did not come within %s:\n%q", what, hung, term.text())
		}
	}
}

// typed types text as the user would.
func (term *terminal) typed(text string) {
	term.t.Helper()
	if _, err := term.keyboard.WriteString(text); err != nil {
		term.t.Fatal(err)
	}
}

// begin runs swdt. If its stdout is a terminal, begin closes that at the end, as the end
// of a process would.
func (w *workplace) begin(ctx context.Context, streams ui.Streams, args ...string) <-chan int {
	w.t.Helper()
	w.t.Setenv("XDG_CACHE_HOME", filepath.Join(w.folder, "cache"))
	args = append(args, "-c", filepath.Join(w.folder, "swdt.yaml"))
	code := make(chan int, 1)
	go func() {
		ended := cli.Run(ctx, streams, args, cli.Environment{
			Agent: agent, Kind: openKind, Getenv: func(string) string { return "" },
		})
		if closer, ok := streams.Out.(io.Closer); ok {
			_ = closer.Close() // an error here has no consequence
		}
		code <- ended
	}()
	return code
}

// endOfDrawing is the end of each drawing: it clears everything below.
const endOfDrawing = "\x1b[J"

var control = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// drawings returns the successive drawings, without the sequences that move the cursor.
func drawings(text string) []string {
	all := strings.Split(text, endOfDrawing)
	for i := range all {
		all[i] = strings.ReplaceAll(control.ReplaceAllString(all[i], ""), "\r", "")
	}
	return all[:len(all)-1] // nothing was drawn after the last one
}
