package diag

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/redact"
)

// A file that is a document loses what only its structure shows to be secret; what
// is no document, or was cut, is scanned by line.
func TestFilesAreRedactedAsDocuments(t *testing.T) {
	r, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{root: t.TempDir(), name: "n", redactor: r, taken: map[string]bool{}}
	const secret = "data:\n  blob: aHVudGVyMg==\nkind: Secret\npassword: hunter2\n"
	for name, test := range map[string]struct {
		limit int64
		blob  bool // is left
	}{
		"secret.yaml": {limit: 1 << 20},
		"secret.log":  {limit: 1 << 20, blob: true},
		"cut.yaml":    {limit: int64(len(secret)) - 1, blob: true},
	} {
		o, path, err := f.output(name, test.limit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Write([]byte(secret)); err != nil {
			t.Fatal(err)
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(f.root, path))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(text); strings.Contains(got, "aHVudGVyMg") != test.blob || strings.Contains(got, "hunter2") || !strings.Contains(got, "kind: Secret") {
			t.Errorf("%s became\n%s", name, got)
		}
	}
}
