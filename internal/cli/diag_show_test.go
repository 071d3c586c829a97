package cli

import (
	"bytes"
	"testing"
)

// What moves a terminal's cursor is not passed on, also where it comes in two pieces.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\r\n\x1b[2Jc\x7f\n": "a\tb \n [2Jc \n", "x\u009b2J\u0085y": "x\u00a02J\u00a0y", "ä · ✗ → 日本 \u00a0\n": "ä · ✗ → 日本 \u00a0\n",
	} {
		for cut := range len(text) {
			var out bytes.Buffer
			w := &visible{w: &out}
			for _, piece := range []string{text[:cut], text[cut:]} {
				if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
					t.Fatal(n, err)
				}
			}
			if out.String() != want {
				t.Errorf("%q cut at %d: %q, want %q", text, cut, out.String(), want)
			}
		}
	}
}
