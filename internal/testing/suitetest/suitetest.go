// Package suitetest builds a stand-in for Kubernetes' e2e.test: lab/specs, a small suite of Ginkgo that
// accepts e2e.test's flags. Its specs take no time, unless they wait for a
// pod, and end in every way in which a spec can end.
package suitetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/gobuild"
)

// Specs is the number of specs of the stand-in.
const Specs = 14

// Build builds the stand-in into a folder of the test, and returns its path.
func Build(t testing.TB) string {
	t.Helper()
	return BuildIn(t, t.TempDir())
}

// BuildIn builds the stand-in into a folder, and returns its path.
func BuildIn(t testing.TB, folder string) string {
	t.Helper()
	path := filepath.Join(folder, "e2e.test")
	gobuild.BuildAs(t, gobuild.Program{Package: ".", Folder: filepath.Join(moduleRoot(t), "lab", "specs"),
		Env: []string{"GOWORK=off"}}, path)
	return path
}

// moduleRoot returns the folder of swdt's module. Tests run in the folder of their package, below it.
func moduleRoot(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "lab", "specs", "go.mod")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			t.Fatal("the test runs outside of swdt's module, so lab/specs was not found")
		}
		folder = parent
	}
}
