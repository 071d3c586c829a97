package windows

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	file, err := files{}.Create(path, platform.CreateTruncate)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(file, content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	file, err := files{}.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestFileIdentityAndTimes(t *testing.T) {
	f, folder := files{}, tempFolder(t)
	path := filepath.Join(folder, "a.txt")
	write(t, path, "one")
	before, err := f.Stat(strings.ToUpper(filepath.ToSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case before.Size != 3:
		t.Errorf("before.Size is %v, want 3", before.Size)
	case before.Folder:
		t.Error("before.Folder is true, want false")
	case before.ID == (platform.FileID{}):
		t.Errorf("before.ID is %v, want anything but %v", before.ID, (platform.FileID{}))
	}
	when := time.Date(2024, 2, 29, 12, 30, 15, 123456700, time.UTC)
	if err := f.SetModified(path, when); err != nil {
		t.Fatal(err)
	}
	renamed := filepath.Join(folder, "b.txt")
	if err := f.Rename(path, renamed, false); err != nil {
		t.Fatal(err)
	}
	entries, err := f.List(folder)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case len(entries) != 1:
		t.Errorf("list after the rename: entries has %d elements, want 1: %v", len(entries), entries)
	case entries[0].Path != renamed:
		t.Errorf("list after the rename: entries[0].Path is %v, want %v", entries[0].Path, renamed)
	case entries[0].ID != before.ID:
		t.Errorf("list after the rename: entries[0].ID is %v, want %v", entries[0].ID, before.ID)
	case !entries[0].Modified.Equal(when):
		t.Errorf("list after the rename: entries[0].Modified is %v, want %v", entries[0].Modified, when)
	}
}

func TestRename(t *testing.T) {
	f, folder := files{}, tempFolder(t)
	a, b := filepath.Join(folder, "a"), filepath.Join(folder, "b")
	write(t, a, "a")
	write(t, b, "b")
	if err := f.Rename(a, b, false); !errors.Is(err, fault.ErrExist) {
		t.Errorf("rename onto a file: %v", err)
	}
	if err := f.Rename(a, a, true); err != nil || read(t, a) != "a" {
		t.Errorf("rename onto itself: %v", err)
	}
	if err := f.Rename(a, b, true); err != nil {
		t.Fatal(err)
	}
	if read(t, b) != "a" {
		t.Error("the file was not replaced")
	}
	if err := f.MakeFolder(a); err != nil {
		t.Fatal(err)
	}
	if err := f.Rename(b, a, true); !errors.Is(err, fault.ErrIsDirectory) {
		t.Errorf("rename onto a folder: %v", err)
	}
	if err := f.Rename(filepath.Join(folder, "none"), b, true); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("rename of nothing: %v", err)
	}
	if err := f.Rename(b, filepath.Join(folder, "B"), false); err != nil {
		t.Errorf("change of case: %v", err)
	}
}

func TestRemove(t *testing.T) {
	f, folder := files{}, tempFolder(t)
	path := filepath.Join(folder, "x")
	write(t, path, "x")
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	switch info, err := f.Stat(path); {
	case err != nil:
		t.Error(err)
	case !info.ReadOnly:
		t.Error("info.ReadOnly is false, want true")
	}
	if err := f.Remove(folder); !errors.Is(err, fault.ErrExist) {
		t.Errorf("remove of a folder with something in it: %v", err)
	}
	if err := f.Remove(path); err != nil {
		t.Error(err)
	}
	if err := f.Remove(path); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("second remove: %v", err)
	}
	deep := filepath.Join(folder, "a", "b", "c")
	if err := errors.Join(f.MakeFolder(deep), f.MakeFolder(deep), f.MakeFolder(`C:\`)); err != nil {
		t.Error(err)
	}
	write(t, path, "x")
	if err := f.MakeFolder(filepath.Join(path, "y")); err == nil {
		t.Error("a folder below a file was made")
	}
}

func TestAccessList(t *testing.T) {
	f, folder := files{}, tempFolder(t)
	if err := f.SetACL(folder, "O:BAD:PAI(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)"); err != nil {
		t.Fatal(err)
	}
	sddl, err := f.ACL(folder)
	if err != nil {
		t.Fatal(err)
	}
	// Wine keeps a Unix mode, which is not an access list; the test can only
	// check that there is a list.
	want := []string{"O:BA", "D:P", "(A;OICI;FA;;;BA)", "(A;OICI;FA;;;SY)"}
	if simulated() == "wine" {
		want = []string{"O:", "D:", ";;;SY)"}
	}
	if slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(sddl, part) }) {
		t.Errorf("access list %s", sddl)
	}
	if err := f.SetACL(folder, "nonsense"); err == nil {
		t.Error("nonsense was taken")
	}
	if _, err := f.ACL(filepath.Join(folder, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("access list of nothing: %v", err)
	}
}

func TestFreeBytes(t *testing.T) {
	free, err := files{}.FreeBytes(`C:\not\there\yet.exe`)
	switch {
	case err != nil:
		t.Error(err)
	case free <= 0:
		t.Errorf("free is %v, want more than 0", free)
	}
	if _, err := (files{}).FreeBytes(`Q:\x`); !errors.Is(err, fault.ErrNotExist) {
		t.Errorf("a drive that is not there: %v", err)
	}
}
