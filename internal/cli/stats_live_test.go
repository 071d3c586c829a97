//go:build linux || darwin

package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

// On a terminal the watch is a table that is redrawn in place and no wider than the
// terminal.
func TestStatsOnATerminal(t *testing.T) {
	const columns = 90
	screen := newTerminal(t, 12, columns)
	var story bytes.Buffer
	code := cli.Run(context.Background(), ui.Streams{In: screen.File, Out: screen.File, Err: &story}, []string{
		"stats", "watch", "--source", "summary", "--kubeconfig", clusterOf(t, "0"), "--interval", "50ms", "--for",
		"700ms",
	}, cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})

	screen.press("\n")
	text := screen.hangUp()

	drawn := drawings(text)
	switch {
	case code != 0:
		t.Fatalf("code = %v, want 0", code)
	case len(drawn) < 2:
		t.Fatalf("len(drawn) = %v, want at least 2: %+v", len(drawn), drawn)
	case !strings.Contains(text, "default/burner/burn"):
		t.Fatalf("text lacks %q:\n%s; exit code %d, drawn %d times\n%q\n%s", "default/burner/burn", text, code,
			len(drawn), text, &story)
	}
	for _, table := range drawn {
		for line := range strings.Lines(table) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
				t.Errorf("%d columns wide: %q", n, line)
			}
		}
	}
}

// The keys of a live table sort and filter it. q ends it as Ctrl-C does, and the
// terminal is restored.
func TestKeysOfStatsOnATerminal(t *testing.T) {
	screen := newTerminal(t, 20, 160)
	before, err := term.GetState(int(screen.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var story bytes.Buffer
	code := make(chan int, 1)
	args := []string{"stats", "watch", "--source", "summary", "--kubeconfig", clusterOf(t, "0"), "--interval", "50ms"}
	go func() {
		code <- cli.Run(ctx, ui.Streams{In: screen.File, Out: screen.File, Err: &story}, args,
			cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})
	}()
	shows := func(what string) {
		t.Helper()
		screen.await(what, func(text string) bool {
			drawn := append([]string{""}, drawings(text)...)
			return strings.Contains(drawn[len(drawn)-1], what)
		})
	}
	shows("s sort, S reverse")
	shows("default/burner/burn")
	screen.press("s")
	shows("CONTAINER↓")
	screen.press("S")
	shows("CONTAINER↑")
	screen.press("/nothing has this")
	shows("/nothing has this_")
	screen.press("\r")
	shows("/nothing has this  Esc clear")
	screen.press("\x1b")
	shows("default/burner/burn")
	screen.press("q")
	if got := <-code; got != 130 {
		t.Errorf("exit code %d: %s", got, &story)
	}
	after, err := term.GetState(int(screen.Fd()))
	if err != nil || *after != *before {
		t.Errorf("the terminal is not as it was: %v, %v", after, err)
	}
}
