//go:build linux || darwin

package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Kill asks the user at the terminal, and ends the named object only after a yes.
func TestHCSKillAsks(t *testing.T) {
	w := newWorkplace(t)
	for _, c := range []struct {
		name, typed, shown string
		code               int
		ctrlC, there       bool
	}{
		{name: "no", typed: "no\n", shown: "the answer was no: nothing was changed", code: 1, there: true},
		{name: "Enter alone", typed: "\n", shown: "the answer was no: nothing was changed", code: 1, there: true},
		{name: "Ctrl-C", ctrlC: true, shown: "interrupted", code: 130, there: true},
		{name: "something else, then yes", typed: "perhaps\nyes\n",
			shown: "killed container burn of pod default/burner"},
	} {
		t.Run(c.name, func(t *testing.T) {
			screen := newTerminal(t, 24, 120)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			result, story := &lines{}, &lines{}
			code := w.begin(ctx, ui.Streams{In: screen.File, Out: result, Err: screen.File}, "hcs",
				"kill", "default/burner/burn")
			screen.await("the question", func(text string) bool {
				return strings.Contains(text, "End container burn of pod default/burner (") &&
					strings.Contains(text, "(yes/no) ")
			})
			if c.ctrlC {
				cancel(&cli.InterruptedError{Signal: "test"})
			} else {
				screen.typed(c.typed)
			}
			if got := <-code; got != c.code {
				t.Errorf("exit code %d, want %d", got, c.code)
			}
			if c.ctrlC {
				screen.typed("\n") // ends the read of the abandoned question, which keeps the terminal open
			}
			if text := screen.hangUp() + result.String(); !strings.Contains(text, c.shown) {
				t.Errorf("%q was not shown:\n%s", c.shown, text)
			}
			_, list := w.swdt(t.Context(), story, "hcs", "list")
			if there := strings.Contains(list, " burn "); there != c.there {
				t.Errorf("whether the container is there: %t\n%s%s", there, list, story)
			}
		})
	}
}
