package localfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/swdt-dev/swdt/internal/localfile"
)

func TestReplaceThenHash(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "file.json")
	for _, content := range []string{"another", "abc"} {
		if err := localfile.Replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("read %q, %v", got, err)
		}
	}
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got, err := localfile.Hash(t.Context(), path); err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := localfile.Hash(ended, path); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}

	// A file that cannot take its place leaves nothing behind.
	if err := os.Mkdir(filepath.Join(folder, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := localfile.Replace(filepath.Join(folder, "taken"), nil); err == nil {
		t.Error("a folder was replaced")
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}
