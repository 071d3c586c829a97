// Package workdir changes the working folder of a test so that Go's cache of test results serves other clones.
package workdir

import (
	"os"
	"path/filepath"
	"testing"
)

// Change makes dir the working folder until the test ends, as T.Chdir does. After T.Chdir, Go logs the files that
// the test binary opens under the path of the folder without symbolic links, because it changes back while PWD still
// has the other folder (testing.common.Chdir of Go 1.26). Results that `make test` has found on the path that all
// clones share then count in no other clone.
func Change(t testing.TB, dir string) {
	t.Helper()
	before, err := os.Getwd() // with the symbolic links of PWD
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(before, dir)
	}
	// The cleanup runs after those of Setenv and Chdir, so PWD has the earlier folder again.
	t.Cleanup(func() {
		if err := os.Chdir(before); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("PWD", dir)
	t.Chdir(dir)
}
