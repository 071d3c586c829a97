package main

import (
	"encoding/json"
	"html"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheRecordedSessionIsOne compares the session's commands with those of its recording, its
// picture and its page, and the page's output with the recording's. TestGuides of internal/cli runs
// the page's commands again.
func TestTheRecordedSessionIsOne(t *testing.T) {
	commands := commandLines(read(t, filepath.Join(root, "scripts/session.txt")), "$ ")
	page := read(t, filepath.Join(root, "docs/guides/session.md"))
	_, recorded, found := strings.Cut(page, "<!-- recorded by scripts/record.sh -->")
	if !found {
		t.Fatal("docs/guides/session.md has no recorded part")
	}
	markers, output := recording(t, filepath.Join(root, "docs/img/session.cast"))
	const remedy = "differs from scripts/session.txt (-); run scripts/record.sh:\n"
	if diff := cmp.Diff(commands, commandLines(recorded, "    $ ")); diff != "" {
		t.Error("docs/guides/session.md (+) " + remedy + diff)
	}
	if diff := cmp.Diff(commands, markers); diff != "" {
		t.Error("docs/img/session.cast (+) " + remedy + diff)
	}
	picture := html.UnescapeString(read(t, filepath.Join(root, "docs/img/session.svg")))
	for _, command := range commands {
		if !strings.Contains(picture, command) {
			t.Errorf("docs/img/session.svg does not show %q; run scripts/record.sh", command)
		}
	}
	for line := range strings.Lines(recorded) {
		line, printed := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if printed && !strings.HasPrefix(line, "$ ") && !strings.Contains(output, line+"\n") {
			t.Errorf("docs/guides/session.md has a line that docs/img/session.cast does not have: %q", line)
		}
	}
}

func commandLines(text, prompt string) []string {
	var commands []string
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), prompt); ok {
			commands = append(commands, command)
		}
	}
	return commands
}

// recording returns the markers of an asciicast, and its output without control sequences. A home
// folder is printed as "…", as on the page.
func recording(t *testing.T, file string) (markers []string, output string) {
	t.Helper()
	_, events, _ := strings.Cut(read(t, file), "\n")
	decoder := json.NewDecoder(strings.NewReader(events))
	var shown strings.Builder
	for decoder.More() {
		var at float64
		var kind, text string
		if err := decoder.Decode(&[]any{&at, &kind, &text}); err != nil {
			t.Fatal(err)
		}
		if kind == "m" {
			markers = append(markers, text)
		} else {
			shown.WriteString(text)
		}
	}
	control := regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]|\r`)
	return markers, strings.ReplaceAll(control.ReplaceAllString(shown.String(), ""), "/tmp/swdt-session", "…")
}
