// Package suitetest builds a stand-in for Kubernetes' e2e.test: lab/specs, a small suite of Ginkgo that
// accepts e2e.test's flags. Its specs take no time, unless they wait for a
// pod, and end in every way in which a spec can end.
package suitetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	cmd.Dir = filepath.Join(moduleRoot(t), "lab", "specs")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build lab/specs: %v\n%s", err, out)
	}
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
