package redact_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/redact"
)

// leastOrdinary is the minimum number of ordinary error lines that redaction must leave as they are.
const leastOrdinary = 200

// Redaction leaves the common error lines of kubelet, containerd, kube-proxy and network plugins as they are, alone and in
// a container's log. testdata/ordinary names the sources of the lines.
func TestOrdinaryErrorsStay(t *testing.T) {
	r, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/ordinary/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no lines", err)
	}
	lines := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(line, "# ") {
				continue
			}
			lines++
			for _, text := range []string{line, "2026-11-29T01:50:00.123456789Z stderr F " + line} {
				if clean := r.String(text); clean != text {
					t.Errorf("%s: %s\nbecame\n%s", file, text, clean)
				}
			}
		}
		if clean := r.String(string(data)); clean != string(data) {
			t.Errorf("%s as one text lost something", file)
		}
	}
	if lines < leastOrdinary {
		t.Errorf("the list has %d lines, want %d", lines, leastOrdinary)
	}
}
