package ui

import (
	"strings"
	"testing"
)

func TestAPageWithoutColoursHasNoneOfTheirMarks(t *testing.T) {
	text := Bad("failed") + " " + Warn("drift") + " " + Good("ok")
	for _, test := range []struct {
		colour bool
		want   string
	}{
		{false, "failed drift ok"},
		{true, "\x1b[31mfailed\x1b[0m \x1b[33mdrift\x1b[0m \x1b[32mok\x1b[0m"},
	} {
		var out strings.Builder
		if n, err := NewPage(&out, test.colour).Write([]byte(text)); err != nil || n != len(text) {
			t.Errorf("wrote %d of %d bytes: %v", n, len(text), err)
		}
		if out.String() != test.want {
			t.Errorf("colour %v: %q, want %q", test.colour, out.String(), test.want)
		}
	}
}

func TestAPageLetsNoNodeMoveTheCursor(t *testing.T) {
	var out strings.Builder
	page := NewPage(&out, true)
	if _, err := page.Write([]byte("a\x1b[2J" + Bad("b\x1b[0m") + "\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "a\\x1b[2J\x1b[31mb\\x1b[0m\x1b[0m\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMarksHaveNoWidthInATable(t *testing.T) {
	var out strings.Builder
	if err := Table(NewPage(&out, false), []string{"STATE", "NAME"},
		[][]string{{Bad("x"), "a"}, {"longer", "b"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "STATE   NAME\nx       a\nlonger  b\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
