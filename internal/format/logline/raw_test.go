package logline_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/logline"
)

func TestEachText(t *testing.T) {
	unmarked := wide("I1129 one ä\r\n\r\nItwo – x\r\n}\r\n", false)[logline.MarkSize:]
	big := wide("I1129 one ä\r\ntwo\r\n", true)[logline.MarkSize:]
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"UTF-8":                  {"one\r\ntwo\n\n", []string{"one\r", "two", ""}},
		"NUL before a line":      {"\x00\x00\x00one\n", []string{"one"}},
		"NUL in a line":          {"torn\x00\x00\x00one\ntwo\x00\n", []string{"torn", "one", "two"}},
		"NUL alone":              {"\x00\x00\n\x00", nil},
		"UTF-16 without a mark":  {unmarked, []string{"I1129 one ä\r", "\r", "Itwo – x\r", "}\r"}},
		"big endian":             {big, []string{"I1129 one ä\r", "two\r"}},
		"UTF-16 behind UTF-8":    {"I1129 before\r\n" + unmarked, []string{"I1129 before\r", "I1129 one ä\r", "\r", "Itwo – x\r", "}\r"}},
		"from within a mark":     {"before\n" + wide("I1129 after\r\n", false), []string{"before", "I1129 after\r"}},
		"half a character ended": {wide("I1129 after", false)[:21], []string{"I1129 aft"}},
	} {
		var got []string
		for raw := range bytes.SplitAfterSeq([]byte(c.file), []byte("\n")) {
			if len(raw) > 0 {
				logline.EachText(raw, func(line []byte) { got = append(got, string(line)) })
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestLines(t *testing.T) {
	got := logline.Lines([]byte("one\r\n\x00\x00two\n\nthree"))
	if want := []string{"one", "two", "", "three"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
