package diag

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/format/redact/document"
)

// In a document, secrets that only its structure shows are redacted too. A file that is no
// document, or was cut, is scanned line by line.
func TestFilesAreRedactedAsDocuments(t *testing.T) {
	r, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{root: t.TempDir(), name: "n", redactor: r, taken: map[string]bool{}}
	const secret = "data:\n  blob: aHVudGVyMg==\nkind: Secret\npassword: hunter2\n"
	const size = 64 << 20
	for name, test := range map[string]struct {
		text      string
		limit     int64
		blob      bool // is left
		linesOnly bool
	}{
		"secret.yaml": {text: secret, limit: size},
		"secret.log":  {text: secret, limit: size, blob: true},
		"cut.yaml":    {text: secret, limit: int64(len(secret)) - 1, blob: true, linesOnly: true},
		"broken.yaml": {text: secret + "x: [\n", limit: size, blob: true, linesOnly: true},
		"large.yaml": {text: secret + strings.Repeat("# x\n", document.Largest/4), limit: size, blob: true,
			linesOnly: true},
		"large.json": {text: `[{"kind": "Secret","data":{"blob":"aHVudGVyMg=="}},"kind: Secret"` +
			strings.Repeat(",1", document.Largest/2) + "]", limit: size},
	} {
		o, path, err := f.output(name, test.limit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Write([]byte(test.text)); err != nil {
			t.Fatal(err)
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(f.root, path))
		if err != nil {
			t.Fatal(err)
		}
		switch got := string(text); {
		case strings.Contains(got, "aHVudGVyMg") != test.blob:
			t.Errorf("strings.Contains(got, \"aHVudGVyMg\") = %v, want %v", strings.Contains(got, "aHVudGVyMg"),
				test.blob)
		case strings.Contains(got, "hunter2"):
			t.Errorf("got contains %q:\n%s", "hunter2", got)
		case !strings.Contains(got, "kind: Secret"):
			t.Errorf("got lacks %q:\n%s; %s became\n%.300s", "kind: Secret", got, name, got)
		}
		if o.linesOnly != test.linesOnly {
			t.Errorf("%s: only its lines were scanned: %t", name, o.linesOnly)
		}
	}
}
