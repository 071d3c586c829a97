//go:build linux || darwin

package cli

import (
	"testing"

	"github.com/creack/pty"
	"github.com/spf13/cobra"

	"github.com/swdt-dev/swdt/internal/ui"
)

// A command that changes something ends without a key.
func TestACommandThatChangesSomethingHasNoPager(t *testing.T) {
	keyboard, screen, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = keyboard.Close(), screen.Close() }()
	if err := pty.Setsize(keyboard, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	a := &app{streams: ui.Guarded(ui.Streams{Out: screen}), env: Environment{Getenv: func(string) string { return "less" }}.complete()}
	for _, test := range []struct {
		cmd    *cobra.Command
		dryRun bool
		want   string
	}{
		{nil, false, "less"}, {&cobra.Command{}, false, "less"},
		{canDryRun(&cobra.Command{}), false, ""}, {canDryRun(&cobra.Command{}), true, "less"},
	} {
		a.invoked, a.global.dryRun = test.cmd, test.dryRun
		if _, got := a.pager(); got != test.want {
			t.Errorf("%v, dry run %v: %q, want %q", test.cmd, test.dryRun, got, test.want)
		}
	}
}
