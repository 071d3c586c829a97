package pager_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/ui/pager"
)

// The rules are those of git-var(1), GIT_PAGER, with swdt's own variable for GIT_PAGER.
func TestCommandIsWhatTheUserHasChosen(t *testing.T) {
	for _, test := range []struct {
		environment map[string]string
		want        string
	}{
		{map[string]string{}, ""},
		{map[string]string{"PAGER": "less -S"}, "less -S"},
		{map[string]string{"PAGER": "less", "SWDT_PAGER": "bat --plain"}, "bat --plain"},
		{map[string]string{"PAGER": "less", "SWDT_PAGER": "cat"}, ""},
		{map[string]string{"PAGER": "less", "SWDT_PAGER": ""}, ""},
		{map[string]string{"PAGER": "cat"}, ""},
		{map[string]string{"PAGER": " "}, ""},
	} {
		got := pager.Command(func(name string) (string, bool) {
			value, isSet := test.environment[name]
			return value, isSet
		})
		if got != test.want {
			t.Errorf("%v: %q, want %q", test.environment, got, test.want)
		}
	}
}

func TestFitsCountsTheLinesOfTheScreen(t *testing.T) {
	for _, test := range []struct {
		text string
		want bool
	}{
		{"", true},
		{"a\nb\nc\n", true},
		{"a\nb\nc", true},
		{"a\nb\nc\nd\n", false},
		{strings.Repeat("x", 30) + "\n", true},
		{strings.Repeat("x", 31) + "\n", false},
		{strings.Repeat("日", 15) + "\n", true},
		{strings.Repeat("日", 16) + "\n", false},
		{strings.Repeat("\x1b[31mx\x1b[0m", 30) + "\n", true},
		{"\n\n\n", true},
		{"\n\n\n\n", false},
	} {
		if got := pager.Fits(test.text, 10, 4); got != test.want {
			t.Errorf("%q fits: %v, want %v", test.text, got, test.want)
		}
	}
}

// show returns what a pager writes to its terminal, which is a file here.
func show(t *testing.T, command, text string) (string, error) {
	t.Helper()
	screen, err := os.Create(filepath.Join(t.TempDir(), "screen"))
	if err != nil {
		t.Fatal(err)
	}
	shown := pager.Show([]string{"sh", "-c", command}, text, screen, io.Discard)
	if err := screen.Close(); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(screen.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(written), shown
}

func TestShowRunsTheCommandLine(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has no sh
	}
	t.Setenv("LESS", "") // restores it at the end
	if err := os.Unsetenv("LESS"); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a line of a long text\n", 100_000)
	for _, test := range []struct{ command, want string }{
		{"sed 's/^/| /' | head -n 1", "| a line of a long text\n"},
		{"head -n 1", "a line of a long text\n"}, // it leaves 2 MB unread
		{"echo $LESS; exit 3", "FRX\n"},
	} {
		if got, err := show(t, test.command, long); err != nil || got != test.want {
			t.Errorf("%s: %q, %v, want %q", test.command, got, err, test.want)
		}
	}
	t.Setenv("LESS", "-S")
	if got, err := show(t, "echo $LESS", long); err != nil || got != "-S\n" {
		t.Errorf("with LESS=-S: %q, %v", got, err)
	}
}

func TestShowReportsAPagerThatCannotBeRun(t *testing.T) {
	if err := pager.Show([]string{"swdt-has-no-such-pager"}, "text", nil, io.Discard); !errors.Is(err, pager.ErrNotRun) {
		t.Errorf("a program that does not exist: %v, want ErrNotRun", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, command := range []string{"swdt-has-no-such-pager", "swdt-has-no-such-pager --flag"} {
		if got, err := show(t, command, "text"); !errors.Is(err, pager.ErrNotRun) || got != "" {
			t.Errorf("%s: %q, %v, want ErrNotRun", command, got, err)
		}
	}
}
