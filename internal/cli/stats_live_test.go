//go:build linux || darwin

package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/swdt-dev/swdt/internal/cli"
	"github.com/swdt-dev/swdt/internal/ui"
)

// On a terminal the watch is a table that is drawn over itself, no wider than the
// terminal is.
func TestStatsOnATerminal(t *testing.T) {
	const columns = 90
	screen := newTerminal(t, 12, columns)
	var story bytes.Buffer
	code := cli.Run(context.Background(), ui.Streams{In: screen.File, Out: screen.File, Err: &story}, []string{
		"stats", "watch", "--source", "summary", "--kubeconfig", clusterOf(t, "0"), "--interval", "50ms", "--for", "700ms",
	}, cli.Environment{Agent: agent, Getenv: func(string) string { return "" }})

	text := screen.hangUp()

	drawn := drawings(text)
	if code != 0 || len(drawn) < 2 || !strings.Contains(text, "default/burner/burn") {
		t.Fatalf("exit code %d, drawn %d times\n%q\n%s", code, len(drawn), text, &story)
	}
	for _, table := range drawn {
		for line := range strings.Lines(table) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
				t.Errorf("%d columns wide: %q", n, line)
			}
		}
	}
}
