package localfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func stage(t *testing.T, folder string) *localfile.Staging {
	t.Helper()
	s, err := localfile.Stage(folder, ".x")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A killed process leaves its folder beside a lock that no process holds, or the lock alone.
func TestStageRemovesWhatDeadProcessesLeft(t *testing.T) {
	folder, past := t.TempDir(), time.Now().Add(-25*time.Hour)
	make := func(name string, lock bool) string {
		path := filepath.Join(folder, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(path, "packets"))
		if lock {
			write(t, path+".swdt-lock")
		}
		return path
	}
	killed, alive := make(".x-1", true), make(".x-2", true)
	young, old := make(".x-3", false), make(".x-4", false)
	other, named := make(".y-1", true), make(".x-mine", true)
	begun, ended := filepath.Join(folder, ".x-5.swdt-lock"), filepath.Join(folder, ".x-6.swdt-lock")
	file, folderLock := filepath.Join(folder, ".x-7"), filepath.Join(folder, ".x-8.swdt-lock")
	for _, path := range []string{ended, file, file + ".swdt-lock"} {
		write(t, path)
	}
	if err := os.Mkdir(folderLock, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{alive + ".swdt-lock", begun} {
		held, err := localfile.Claim(path)
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
	}
	for _, path := range []string{old, alive, other} {
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
	}
	first := stage(t, folder)
	second := stage(t, folder) // does not take the first one's
	for path, want := range map[string]bool{
		killed: false, killed + ".swdt-lock": false, old: false, ended: false,
		alive: true, alive + ".swdt-lock": true, begun: true, young: true, other: true, named: true,
		file: true, folderLock: true, first.Path: true, second.Path: true,
	} {
		if exists(path) != want {
			t.Errorf("%s is there: %v, want %v", path, !want, want)
		}
	}
	if err := first.Remove(); err != nil {
		t.Errorf("removal: %v", err)
	}
	if exists(first.Path) || exists(first.Path+".swdt-lock") {
		t.Error("the folder or its lock is left after the removal")
	}
	if err := first.Remove(); err != nil {
		t.Errorf("second removal: %v", err)
	}
	if err := second.Keep(filepath.Join(folder, "missing", "kept")); err == nil || !exists(second.Path+".swdt-lock") {
		t.Errorf("kept in a folder that is missing: %v", err)
	}
	kept := filepath.Join(folder, "kept")
	write(t, filepath.Join(second.Path, "packets"))
	if err := second.Keep(kept); err != nil || second.Remove() != nil {
		t.Errorf("unexpected error: %v", err)
	}
	if !exists(filepath.Join(kept, "packets")) {
		t.Error("the folder was not kept")
	}
	if exists(second.Path) || exists(second.Path+".swdt-lock") {
		t.Error("the folder or its lock is left at the first place")
	}
}

// A moment between any two steps of one process is a moment in which another one may tidy.
func TestStagingSideBySide(t *testing.T) {
	const processes, rounds = 8, 100
	folder := t.TempDir()
	var group sync.WaitGroup
	for process := range processes {
		group.Go(func() {
			for round := range rounds {
				s, err := localfile.Stage(folder, ".x")
				if err != nil {
					t.Error(err)
					return
				}
				kept := filepath.Join(folder, fmt.Sprintf("kept-%d-%d", process, round))
				err = os.WriteFile(filepath.Join(s.Path, "packets"), nil, 0o600)
				if err := errors.Join(err, s.Keep(kept), s.Remove()); err != nil {
					t.Error(err)
					return
				}
				if !exists(filepath.Join(kept, "packets")) {
					t.Errorf("%s was emptied", kept)
				}
			}
		})
	}
	group.Wait()
	left, err := filepath.Glob(filepath.Join(folder, ".x-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// In a folder such as /tmp, another user can give any file a name that Stage looks at.
func TestStageIsNotLedAstray(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a link needs a right on Windows that ordinary users lack, and each user has a folder for such files")
	}
	folder, away := t.TempDir(), t.TempDir()
	precious := filepath.Join(away, "precious")
	write(t, precious)
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(away, ".x-1")
	write(t, filepath.Join(folder, ".x-1.swdt-lock"))
	link(precious, ".x-2.swdt-lock")
	link(filepath.Join(away, "made"), ".x-3.swdt-lock")
	if err := stage(t, folder).Remove(); err != nil {
		t.Error(err)
	}
	if !exists(precious) || exists(filepath.Join(away, "made")) {
		t.Error("a file behind a link was removed or made")
	}
	for _, name := range []string{".x-2.swdt-lock", ".x-3.swdt-lock"} {
		if file, err := localfile.Claim(filepath.Join(folder, name)); err == nil {
			file.Close()
			t.Errorf("%s: the file behind the link is claimed", name)
		}
	}
	if exists(filepath.Join(away, "made")) {
		t.Error("a claim made the file behind a link")
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

// The next run, of whatever command, removes the folder of a killed run.
func TestScratch(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	killed := filepath.Join(folder, "swdt-scratch-1")
	if err := os.Mkdir(killed, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(killed, "file"))
	write(t, killed+".swdt-lock")
	first, err := localfile.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	second, err := localfile.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(first.Path); err != nil {
		t.Errorf("a run that works has lost its folder: %v", err)
	}
	if err := errors.Join(first.Remove(), second.Remove()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
