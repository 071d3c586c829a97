package cli

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/swdt-dev/swdt/api/v1alpha1"
	"github.com/swdt-dev/swdt/internal/config"
)

// However the bytes arrive, each line comes out whole and marked.
func TestPrefixedLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab \r\n"))).Draw(t, "text")
		var out bytes.Buffer
		w := newLineWriter(&out).prefixed("n: ")
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
	w := newLineWriter(&out).prefixed("n: ")
	if _, err := w.Write(bytes.Repeat([]byte("x"), 2*maxLine)); err != nil || out.Len() < 2*maxLine {
		t.Fatalf("%d bytes came out, %v", out.Len(), err)
	}
}

func TestParsePlace(t *testing.T) {
	for text, want := range map[string]place{
		`node:C:\k\kubelet.exe`: {"node", `C:\k\kubelet.exe`},
		`win-1:/C:/k`:           {"win-1", `/C:/k`},
		`C:\k`:                  {"", `C:\k`},
		`c:/k`:                  {"", `c:/k`},
		`kubelet.exe`:           {"", `kubelet.exe`},
		`./odd:name`:            {"", `./odd:name`},
		`/tmp/a:b`:              {"", `/tmp/a:b`},
		`node:`:                 {"node", ""},
	} {
		if got := parsePlace(text); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestANodeMayBeCalledNode(t *testing.T) {
	documents := []config.Document{
		{Node: v1alpha1.Node{Metadata: v1alpha1.Metadata{Name: "one"}}},
		{Node: v1alpha1.Node{Metadata: v1alpha1.Metadata{Name: "node"}}},
	}
	if got, err := onNode(documents, "node"); err != nil || len(got) != 1 || got[0].Node.Metadata.Name != "node" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := onNode(documents[:1], "node"); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestClosest(t *testing.T) {
	candidates := []string{"status", "setup", "kubernetes", "push", "cp", "only", "output"}
	for typed, want := range map[string]string{
		"statsu": "status", "Status": "status", "kuberentes": "kubernetes", "pus": "push", "olny": "only",
		"frobnicate": "", "xy": "", "kube": "kubernetes", "": "",
	} {
		if got := closest(typed, candidates); got != want {
			t.Errorf("%s: %q, want %q", typed, got, want)
		}
	}
	// Both are one slip away: one has a letter more, the other another letter.
	if got := closest("staus", []string{"stats", "status"}); got != "status" {
		t.Errorf("of two that are as close: %q", got)
	}
}

func TestEditsIsADistance(t *testing.T) {
	word := rapid.StringOf(rapid.SampledFrom([]rune("abc")))
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		if (edits(a, b) == 0) != (a == b) || edits(a, b) != edits(b, a) || edits(a, c) > edits(a, b)+edits(b, c) {
			t.Fatalf("%q %q %q: %d %d %d", a, b, c, edits(a, b), edits(b, c), edits(a, c))
		}
	})
}

func TestLocalCode(t *testing.T) {
	for code, want := range map[int]int{0: 0, 1: 1, 255: 255, 256: 1, -1073741510: 1, 1603: 1} {
		if got := localCode(code); got != want {
			t.Errorf("%d: %d, want %d", code, got, want)
		}
	}
}

func TestDisplayName(t *testing.T) {
	for program, want := range map[string]string{
		"swdt": "swdt", "/usr/bin/swdt": "swdt", `C:\bin\swdt.exe`: "swdt", "": "swdt", "/tmp/renamed": "swdt",
		"/usr/local/bin/kubectl-swdt": "kubectl swdt", `C:\bin\kubectl-swdt.exe`: "kubectl swdt",
	} {
		if got := displayName(program); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}
