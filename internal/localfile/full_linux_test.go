package localfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/swdt-dev/swdt/internal/localfile"
)

// A replacement on a full disk names the disk, and leaves the file and its folder as they were. /dev/full is Linux' own
// full disk.
func TestReplaceOnAFullDisk(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "record.json")
	if err := localfile.Replace(path, []byte("before")); err != nil {
		t.Fatal(err)
	}
	err := localfile.ReplaceBy(path, func(io.Writer) error {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		_, err = full.Write([]byte("after"))
		return err
	})
	if full, ok := errors.AsType[*localfile.FullError](err); !ok || full.Folder != folder || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the error is %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "before" {
		t.Errorf("the file has %q, %v", got, err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
	other := errors.New("other")
	if err := localfile.ReplaceBy(path, func(io.Writer) error { return other }); !errors.Is(err, other) || errors.As(err, new(*localfile.FullError)) {
		t.Errorf("another error became %v", err)
	}
}
