package windows

import (
	"errors"
	"os"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// tempFolder is t.TempDir, except that it removes the tree in a way that works
// under Wine.
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
	if errors.Is(err, fault.ErrNotExist) {
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
