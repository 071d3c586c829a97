package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/cli"
)

func written(t *testing.T) map[string][]byte {
	t.Helper()
	all, err := pages(t.Context(), edition{"1.4.0", "2026-11-24"})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryCommandHasAPage(t *testing.T) {
	all := written(t)
	for _, path := range cli.Commands() {
		name := strings.Join(append([]string{"swdt"}, path...), "-") + ".1"
		if len(path) > 0 && path[0] == "help" {
			continue
		}
		if len(all[name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	for _, part := range []string{"OPTIONS OF EVERY COMMAND", `\-\-config`, "130  interrupted"} {
		if !bytes.Contains(all["swdt.1"], []byte(part)) {
			t.Errorf("swdt.1 has no %q", part)
		}
	}
}

// lint returns what mandoc complains about, except for long lines of the source.
func lint(t *testing.T, files ...string) string {
	t.Helper()
	output, err := exec.Command("mandoc", append([]string{"-Tlint", "-Wwarning"}, files...)...).CombinedOutput()
	if err != nil && len(output) == 0 {
		t.Fatalf("run mandoc, which scripts/install-test-deps.sh installs: %v", err)
	}
	return string(output)
}

func TestPagesAreCorrect(t *testing.T) {
	folder := t.TempDir()
	var files []string
	for name, page := range written(t) {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, page, 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	if complaints := lint(t, files...); complaints != "" {
		t.Error(complaints)
	}
	broken := filepath.Join(folder, "broken.1")
	if err := os.WriteFile(broken, []byte(".TH X 1\n.SH NAME\n.RS\n.EX\n.NOSUCH\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if lint(t, broken) == "" {
		t.Error("mandoc does not complain about a broken page, so it proves nothing")
	}
}

// TestText reads what a reader sees, since the source may be correct and mean something else.
func TestText(t *testing.T) {
	var r roff
	r.WriteString(".TH X 1 2026-11-24\n.SH NAME\nx \\- y\n.SH DESCRIPTION\n.nh\n.ad l\n")
	r.text(`Runs \\.\pipe\x with -o 'json' and ~/x^2.

.dot begins a line; ` + "`swdt status -o json`" + ` is a command, and ` + "`" + ` is not:
- one, which
  goes on
- two

  C:\k\kubelet.exe   # kept   as it is
  .hidden
`)
	show := exec.Command("mandoc", "-Tutf8")
	show.Stdin = bytes.NewReader(r.Bytes())
	output, err := show.Output()
	if err != nil {
		t.Fatal(err)
	}
	text := plain(string(output))
	for _, want := range []string{
		`Runs \\.\pipe\x with -o 'json' and ~/x^2.`,
		".dot begins a line; `swdt status -o json` is a command, and ` is not:",
		"• one, which goes on\n",
		"• two\n",
		"  C:\\k\\kubelet.exe   # kept   as it is\n",
		"  .hidden\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// plain removes the overstrikes with which a terminal prints bold text.
func plain(text string) string {
	var b strings.Builder
	runes := []rune(text)
	for i, r := range runes {
		if r != '\b' && (i+1 == len(runes) || runes[i+1] != '\b') {
			b.WriteRune(r)
		}
	}
	return b.String()
}
