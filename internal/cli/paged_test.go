//go:build linux || darwin

package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

// Help and results that are longer than the screen are shown by the pager, which marks each line here, and nothing else is.
func TestThePagerShowsWhatIsLongerThanTheScreen(t *testing.T) {
	const mark = "sed 's/^/paged: /'"
	for _, test := range []struct {
		name, pager string
		rows        uint16
		args        string
		paged       bool
	}{
		{"help", mark, 24, "push --help", true},
		{"a result", mark, 24, "readiness list", true},
		{"a coloured result", mark, 24, "doctor --list-rules", true},
		{"a screen that is long enough", mark, 900, "push --help", false},
		{"no pager", "", 24, "push --help", false},
		{"cat", "cat", 24, "push --help", false},
		{"a pager that is not there", "swdt-has-no-such-pager", 24, "push --help", false},
		{"JSON", mark, 24, "readiness list -o json", false},
		{"a short result", mark, 24, "version", false},
	} {
		screen := newTerminal(t, test.rows, 80)
		environment := map[string]string{"TERM": "xterm", "SWDT_PAGER": test.pager}
		var stderr bytes.Buffer
		code := cli.Run(t.Context(), ui.Streams{Out: screen.File, Err: &stderr}, strings.Fields(test.args),
			cli.Environment{Getenv: func(name string) string { return environment[name] }})
		text := screen.hangUp()
		if code != 0 || len(text) < 20 || strings.HasPrefix(text, "paged: ") != test.paged {
			t.Errorf("%s: exit code %d, want paged %v:\n%.200s\n%s", test.name, code, test.paged, text, &stderr)
		}
	}
	var stdout bytes.Buffer
	code := cli.Run(t.Context(), ui.Streams{Out: &stdout, Err: &stdout}, []string{"push", "--help"},
		cli.Environment{Getenv: func(string) string { return mark }})
	if code != 0 || stdout.Len() < 20 || strings.Contains(stdout.String(), "paged: ") {
		t.Errorf("stdout is no terminal: exit code %d, %.200s", code, &stdout)
	}
}
