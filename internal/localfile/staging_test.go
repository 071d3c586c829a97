package localfile_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/swdt-dev/swdt/internal/localfile"
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func stage(t *testing.T, folder string) *localfile.Staging {
	t.Helper()
	s, err := localfile.Stage(folder, ".x")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A killed process leaves its folder with a lock that no process holds.
func TestStageRemovesWhatDeadProcessesLeft(t *testing.T) {
	folder := t.TempDir()
	make := func(name string) string {
		path := filepath.Join(folder, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write := func(path string) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	killed, alive, young, old := make(".x-1"), make(".x-2"), make(".x-3"), make(".x-4")
	other, named := make(".y-1"), make(".x-mine")
	write(filepath.Join(killed, ".swdt-lock"))
	write(filepath.Join(killed, "packets"))
	write(filepath.Join(named, ".swdt-lock"))
	held := flock.New(filepath.Join(alive, ".swdt-lock"))
	if ok, err := held.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	defer held.Unlock()
	past := time.Now().Add(-25 * time.Hour)
	for _, path := range []string{old, alive, other} {
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
	}
	first := stage(t, folder)
	second := stage(t, folder) // does not take the first one's
	for path, want := range map[string]bool{
		killed: false, old: false, alive: true, young: true, other: true, named: true, first.Path: true,
		second.Path: true,
	} {
		if exists(path) != want {
			t.Errorf("%s is there: %v, want %v", path, !want, want)
		}
	}
	if err := first.Remove(); err != nil || exists(first.Path) {
		t.Errorf("%v, still there: %v", err, exists(first.Path))
	}
	kept := filepath.Join(folder, "kept")
	switch err := second.Keep(kept); {
	case err != nil:
		t.Errorf("unexpected error: %v", err)
	case !exists(kept):
		t.Errorf("exists(kept) is wrong; %v, kept: %v", err, exists(kept))
	case exists(filepath.Join(kept, ".swdt-lock")):
		t.Errorf("exists(filepath.Join(kept, \".swdt-lock\")) is wrong; %v, kept: %v", err, exists(kept))
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes: a new file has the rights of its folder")
	}
	path := filepath.Join(t.TempDir(), "file")
	mode := func() os.FileMode {
		file, err := localfile.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := file.Stat()
		if err != nil || file.Close() != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if got := mode(); got != 0o600 {
		t.Errorf("a new file: %v", got)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := mode(); got != 0o644 {
		t.Errorf("an existing file: %v", got)
	}
}
