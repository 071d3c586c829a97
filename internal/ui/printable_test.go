package ui_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/internal/ui"
)

func printables() map[string]string {
	return map[string]string{
		"plain\ttext\n":                       "plain\ttext\n",
		"a\r\nb\r\r\nc\rd":                    "a\nb\\r\nc\\rd",
		"\x1b]0;title\a\x1b[2J":               `\x1b]0;title\a\x1b[2J`,
		"\u009b31m\u0085 \x7f\x00\b":          `\u009b31m\u0085 \u007f\x00\b`,
		"name\u202etxt.exe \u2066x\u2069":     `name\u202etxt.exe \u2066x\u2069`,
		"broken \x9b31m \xff \xe6\x97":        "broken \ufffd31m \ufffd \ufffd",
		"ä · ✗ → 日本 \u00a0 👩\u200d💻 \ufffd\n": "ä · ✗ → 日本 \u00a0 👩\u200d💻 \ufffd\n",
	}
}

// The result is the same if the text arrives in two pieces, wherever it is cut.
func TestPrintableWriter(t *testing.T) {
	for text, want := range printables() {
		for cut := range len(text) {
			var out bytes.Buffer
			w := ui.NewPrintableWriter(&out)
			for _, piece := range []string{text[:cut], text[cut:]} {
				if n, err := io.WriteString(w, piece); n != len(piece) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			// Two broken bytes of one letter may count as one or as two.
			if got := strings.ReplaceAll(out.String(), "\ufffd\ufffd", "\ufffd"); got != want {
				t.Errorf("%q cut at %d: %q, want %q", text, cut, got, want)
			}
		}
	}
}

func TestPrintableIsOneLine(t *testing.T) {
	if got := ui.Printable("one\r\ntwo\x1b[A\n"); got != `one\ntwo\x1b[A\n` {
		t.Fatalf("%q", got)
	}
	if got := ui.PrintableLines("one\r\ntwo\x1b[A\n"); got != "one\ntwo\\x1b[A\n" {
		t.Fatalf("%q", got)
	}
}

// In whatever pieces a text is written, the output has no control characters, and a text
// without them is unchanged.
func TestPrintableWriterPassesNoControls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SliceOf(rapid.SampledFrom(
			[]byte("ab \r\n\t\x1b\x7f\xc2\x9b\xe2\x80\xae\xff\xf0\x9f\x91\xa9")))).Draw(t, "pieces")
		var out, all bytes.Buffer
		w := ui.NewPrintableWriter(&out)
		for _, piece := range pieces {
			all.Write(piece)
			if _, err := w.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), "\r\x1b\x7f\u009b\u202e") || !utf8.Valid(out.Bytes()) {
			t.Fatalf("%q became %q", all.String(), out.String())
		}
		if got := ui.PrintableLines(all.String()); got != out.String() {
			t.Fatalf("%q: %q in pieces, %q as a whole", all.String(), out.String(), got)
		}
	})
}

func TestPrintableWriterReportsAFullDisk(t *testing.T) {
	full := errors.New("disk full")
	for _, text := range []string{"plain", "\x1b"} {
		if _, err := ui.NewPrintableWriter(failing{full}).Write([]byte(text)); !errors.Is(err, full) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
