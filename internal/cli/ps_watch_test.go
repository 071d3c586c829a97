//go:build linux || darwin

package cli_test

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

// watching is a running `swdt ps --watch`.
type watching struct {
	story *lines
	end   context.CancelCauseFunc
	code  <-chan int
}

func (w *workplace) watchPs(out io.Writer, args ...string) *watching {
	w.t.Helper()
	ctx, cancel := context.WithCancelCause(w.t.Context())
	p := &watching{story: &lines{}, end: cancel}
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Logf("its story: %s", p.story)
		}
	})
	args = append([]string{"ps", "--watch", "--interval", "100ms"}, args...)
	p.code = w.begin(ctx, ui.Streams{Out: out, Err: p.story}, args...)
	return p
}

// interrupt does what Ctrl-C does.
func (p *watching) interrupt(t *testing.T) {
	t.Helper()
	p.end(&cli.InterruptedError{Signal: "test"})
	if code := <-p.code; code != 130 {
		t.Errorf("after Ctrl-C: exit code %d\n%s", code, p.story)
	}
}

// On a terminal, each table replaces the previous one and is no larger than the terminal.
// It shows what ended and, after a lost connection, that the watch goes on.
func TestPsWatchOnATerminal(t *testing.T) {
	const rows, columns = 6, 110
	w := newWorkplace(t)
	screen := newTerminal(t, rows, columns)
	p := w.watchPs(screen.File)

	last := func(text string) string {
		all := drawings(text)
		return append(all, "")[max(0, len(all)-1)]
	}
	screen.await("two tables with the pod's own process", func(text string) bool {
		return len(drawings(text)) > 1 && strings.Contains(last(text), "pauseloop.exe")
	})
	if w.machine.Kill("pauseloop.exe") == 0 {
		t.Fatal("there was no pauseloop.exe")
	}
	screen.await("a table without it", func(text string) bool {
		return strings.Contains(last(text), "default/burner") && !strings.Contains(last(text), "pauseloop.exe")
	})
	seen := len(drawings(screen.text()))
	if w.machine.Kill("swdt-agent.exe") == 0 {
		t.Fatal("there was no agent")
	}
	screen.await("tables over the next connection", func(text string) bool { return len(drawings(text)) > seen+2 })
	p.interrupt(t)

	if !strings.Contains(p.story.String(), "reconnecting") {
		t.Errorf("the lost connection is not reported: %s", p.story)
	}
	for _, table := range drawings(screen.hangUp()) {
		if n := strings.Count(table, "\n"); n >= rows {
			t.Errorf("%d lines on a terminal of %d:\n%s", n, rows, table)
		}
		for line := range strings.Lines(table) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
				t.Errorf("%d columns wide: %q", n, line)
			}
		}
	}
}

// The second table begins at the same place as the first: the cursor moves up as many
// lines as were drawn.
func TestPsWatchDrawsOverItself(t *testing.T) {
	w := newWorkplace(t)
	screen := newTerminal(t, 50, 200)
	p := w.watchPs(screen.File)
	screen.await("two tables", func(text string) bool { return len(drawings(text)) > 1 })
	p.interrupt(t)
	first, second, _ := strings.Cut(screen.hangUp(), endOfDrawing)
	up := "\x1b[" + strconv.Itoa(strings.Count(first, "\n")) + "A"
	if !strings.HasPrefix(second, up) {
		t.Errorf("the second one does not begin with %q: %.100q", up, second)
	}
}

// Without a terminal each look follows the previous one; as JSON, each is one line.
func TestPsWatchInAPipe(t *testing.T) {
	w := newWorkplace(t)
	for format, each := range map[string]func(*testing.T, []string){
		"text": func(t *testing.T, looks []string) {
			for _, look := range looks {
				switch {
				case !strings.HasPrefix(look, "win 2"):
					t.Errorf("look = %q, want the prefix %q", look, "win 2")
				case !strings.Contains(look, "\nOWNER "):
					t.Errorf("look lacks %q:\n%s", "\nOWNER ", look)
				case strings.Contains(look, "\x1b"):
					t.Errorf("look contains %q:\n%s; a look: %q", "\x1b", look, look)
				}
			}
		},
		"json": func(t *testing.T, looks []string) {
			for _, look := range looks {
				var node struct {
					Name string
					Pods []struct{ Name string }
				}
				switch err := json.Unmarshal([]byte(look), &node); {
				case err != nil:
					t.Errorf("unexpected error: %v", err)
				case node.Name != "win":
					t.Errorf("node.Name = %q, want %q", node.Name, "win")
				case len(node.Pods) != 1:
					t.Errorf("len(node.Pods) = %v, want 1: %+v", len(node.Pods), node.Pods)
				case node.Pods[0].Name != "burner":
					t.Errorf("node.Pods[0].Name = %q, want %q; a look: %+v, %v", node.Pods[0].Name, "burner", node, err)
				}
			}
		},
	} {
		t.Run(format, func(t *testing.T) {
			const wanted = 3
			out := &looks{reached: make(chan struct{}), wanted: wanted,
				separator: map[string]string{"text": "win 2", "json": "\n"}[format]}
			p := w.watchPs(out, "-o", format)
			<-out.reached
			p.interrupt(t)
			each(t, out.all())
		})
	}
}

// In a pipe, too, each look reports what could not be read.
func TestPsWatchInAPipeReportsGaps(t *testing.T) {
	w := newWorkplace(t)
	stop(t, w.machine)
	out := &looks{reached: make(chan struct{}), wanted: 1, separator: "win 2"}
	p := w.watchPs(out)
	<-out.reached
	p.interrupt(t)
	if look := out.all()[0]; !strings.Contains(look, "\nwin: pods and orphaned shims are unknown: ") ||
		!strings.Contains(look, "\nOWNER ") {
		t.Errorf("a look: %q", look)
	}
}

// looks signals when a number of looks have been written.
type looks struct {
	lines
	wanted    int
	separator string
	reached   chan struct{}
}

func (l *looks) Write(p []byte) (int, error) {
	n, err := l.lines.Write(p)
	if l.wanted > 0 && strings.Count(l.String(), l.separator) > l.wanted {
		l.wanted = 0
		close(l.reached)
	}
	return n, err
}

// all returns the looks without the last one, which Ctrl-C may have cut.
func (l *looks) all() (all []string) {
	text := l.String()
	if l.separator == "\n" {
		all = strings.Split(text, "\n")
	} else {
		for _, part := range strings.Split(text, l.separator)[1:] {
			all = append(all, l.separator+part)
		}
	}
	return all[:len(all)-1]
}
