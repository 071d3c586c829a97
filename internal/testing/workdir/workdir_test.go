//go:build unix

package workdir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/testing/workdir"
)

// The paths of symbolic links stay, during a test and after it.
func TestLinksStay(t *testing.T) {
	folder, links := t.TempDir(), t.TempDir()
	link := filepath.Join(links, "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(folder, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		if got, err := os.Getwd(); err != nil || got != want {
			t.Errorf("the working folder is %s, want %s; %v", got, want, err)
		}
	}
	workdir.Change(t, link)
	t.Run("below", func(t *testing.T) {
		workdir.Change(t, "below")
		expect(filepath.Join(link, "below"))
	})
	expect(link)
}
