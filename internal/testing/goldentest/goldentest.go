// Package goldentest compares what a test has made with a file of its testdata.
package goldentest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check fails the test if the file at path, below testdata, has another content than got. With UPDATE_GOLDENS=1 in the
// environment, it writes the file.
func Check(t testing.TB, path, got string) {
	t.Helper()
	path = filepath.Join("testdata", path)
	if os.Getenv("UPDATE_GOLDENS") == "1" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: UPDATE_GOLDENS=1 accepts this (-golden +got):\n%s", path, diff)
	}
}
