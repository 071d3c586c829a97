package ui

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// In whatever pieces the bytes arrive, each line is written as a whole, with its prefix.
func TestPrefixedLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab \r\n"))).Draw(t, "text")
		var out bytes.Buffer
		w := NewLineWriter(&out).Prefixed("n: ")
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if wrote, err := w.Write([]byte(rest[:n])); wrote != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", wrote, n, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for line := range strings.Lines(text) {
			want.WriteString("n: " + strings.TrimRight(line, "\r\n") + "\n")
		}
		if out.String() != want.String() {
			t.Fatalf("%q became %q, want %q", text, out.String(), want.String())
		}
	})
}

func TestALineWithoutEndIsNotKeptForEver(t *testing.T) {
	var out bytes.Buffer
	w := NewLineWriter(&out).Prefixed("n: ")
	if _, err := w.Write(bytes.Repeat([]byte("x"), 2*maxLine)); err != nil || out.Len() < 2*maxLine {
		t.Fatalf("%d bytes came out, %v", out.Len(), err)
	}
}
