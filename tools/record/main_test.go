package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	got, err := parse("~ zero\n# First\n$ one\n$ two\n! 4\n\n# Second\n$ three\n")
	want := []command{{text: "zero", hidden: true}, {title: "First", text: "one"}, {text: "two", exit: 4}, {title: "Second", text: "three"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(command{})); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, bad := range []string{"", "# a title alone\n", "swdt status\n", "! 4\n", "$ one\n! four\n", "$ one\n! 4\n$ two\n"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestCollect reads a command's end however the terminal cuts it into parts.
func TestCollect(t *testing.T) {
	const all = "one\x1b[0m\r\ntwo\x1b]record;4\a"
	for name, reader := range map[string]io.Reader{
		"whole":        strings.NewReader(all),
		"single bytes": iotest.OneByteReader(strings.NewReader(all)),
		"halves":       iotest.HalfReader(strings.NewReader(all)),
	} {
		output, code, err := collect(reader)
		if diff := cmp.Diff("one\x1b[0m\r\ntwo", string(joined(output))); err != nil || code != 4 || diff != "" {
			t.Errorf("%s: code %d, %v\n%s", name, code, err, diff)
		}
	}
	if _, _, err := collect(strings.NewReader("the shell has ended")); err == nil {
		t.Error("an output without its end is accepted")
	}
}

func TestLinesAreThoseThatStay(t *testing.T) {
	got := lines([]byte("working\r\n\x1b[1A\x1b[Jdone \x1b[33mbinary\x1b[0m\r\n\r\nlast\r\n"))
	if diff := cmp.Diff([]string{"done binary", "", "last"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCastCutsWaits(t *testing.T) {
	got := cast([]command{{text: "h", hidden: true}, {text: "w"}, {text: "x"}}, [][]chunk{nil, nil, {{time.Hour, []byte("y\r\n")}}})
	want := `[0.00, "m", "w"]
[0.00, "o", "\u001b[32m$\u001b[0m "]
[0.00, "o", "w"]
[0.00, "o", "\r\n"]
[0.00, "m", "x"]
[0.00, "o", "\u001b[32m$\u001b[0m "]
[0.03, "o", "x"]
[0.43, "o", "\r\n"]
[0.93, "o", "y\r\n"]
[2.53, "o", ""]
`
	_, events, _ := bytes.Cut(got, []byte("\n"))
	if diff := cmp.Diff(want, string(events)); diff != "" {
		t.Error(diff)
	}
}
