//go:build unix

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

func TestOpenRegular(t *testing.T) {
	folder := t.TempDir()
	pipe, file := filepath.Join(folder, "pipe"), filepath.Join(folder, "file")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	opened, info, err := localfile.OpenRegular(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if text, err := io.ReadAll(opened); err != nil || string(text) != "text" || info.Size() != 4 {
		t.Errorf("it read %q, %v; the size is %d", text, err, info.Size())
	}
	for _, path := range []string{pipe, folder, os.DevNull} {
		if _, _, err := localfile.OpenRegular(path); !errors.Is(err, localfile.ErrNotRegular) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, _, err := localfile.OpenRegular(filepath.Join(folder, "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
