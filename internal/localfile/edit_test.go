package localfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// An edit keeps the mode of a file and a link to it, and refuses a file that was changed in the meantime.
func TestEdit(t *testing.T) {
	folder := t.TempDir()
	file, link := filepath.Join(folder, "a.yaml"), filepath.Join(folder, "link.yaml")
	if err := os.WriteFile(file, []byte("one"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.yaml", link); err != nil {
		t.Fatal(err)
	}
	if err := localfile.Edit(link, []byte("one"), []byte("two")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(file)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	if err := localfile.Edit(file, []byte("one"), []byte("two")); err != nil { // it is there already
		t.Error(err)
	}
	if err := localfile.Edit(file, []byte("one"), []byte("three")); !errors.Is(err, localfile.ErrChanged) {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "two" {
		t.Errorf("%q, %v", text, err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}
