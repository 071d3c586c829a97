package windows

import (
	"errors"
	"os"
	"testing"

	"github.com/swdt-dev/swdt/internal/host"
)

// tempFolder is t.TempDir, whose own way to remove a tree fails under Wine.
func tempFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "swdt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeTree(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}

func removeTree(folder string) error {
	f := files{}
	entries, err := f.List(folder)
	if errors.Is(err, host.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Folder && !entry.Link {
			err = errors.Join(err, removeTree(entry.Path))
		} else {
			err = errors.Join(err, f.Remove(entry.Path))
		}
	}
	return errors.Join(err, f.Remove(folder))
}
