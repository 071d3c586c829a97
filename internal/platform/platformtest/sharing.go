package platformtest

import (
	"errors"
	"io"
	"testing"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// testSharing checks which access other processes have to a file that is open.
func testSharing(t *testing.T, fixture func(*testing.T) Fixture) {
	t.Run("OneWriter", func(t *testing.T) {
		f := fixture(t)
		w, err := f.Platform.Files.Create(f.path("file"), platform.CreateNew)
		check(t, err)
		defer w.Close()
		_, err = io.WriteString(w, "text")
		check(t, err)
		if _, err := f.Platform.Files.Create(f.path("file"), platform.CreateAppend); !errors.Is(err, fault.ErrInUse) {
			t.Errorf("a second writer: %v", err)
		}
		if got := f.read(t, f.path("file")); got != "text" {
			t.Errorf("a reader meanwhile: %q", got)
		}
		check(t, w.Close())
		f.write(t, f.path("file"), "again")
	})
	t.Run("ReadersAreNotInTheWay", func(t *testing.T) {
		f := fixture(t)
		f.write(t, f.path("file"), "text")
		r, err := f.Platform.Files.Open(f.path("file"))
		check(t, err)
		defer r.Close()
		check(t, f.Platform.Files.Rename(f.path("file"), f.path("moved"), false))
		check(t, f.Platform.Files.Remove(f.path("moved")))
		if text, err := io.ReadAll(r); string(text) != "text" || err != nil {
			t.Errorf("the reader: %q, %v", text, err)
		}
		check(t, r.Close())
		if _, err := f.Platform.Files.Stat(f.path("moved")); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("the file: %v", err)
		}
	})
	t.Run("AScannerIsInTheWay", func(t *testing.T) {
		f := fixture(t)
		path := f.path("file")
		f.write(t, path, "text")
		check(t, f.Platform.Files.CheckHeld(path))
		scanner := f.begin(t, "scan", path)
		if line := scanner.line(t); line != "scanning" {
			t.Fatalf("the scanner says %q", line)
		}
		_, written := f.Platform.Files.Create(path, platform.CreateAppend)
		for what, err := range map[string]error{
			"asked":              f.Platform.Files.CheckHeld(path),
			"renamed":            f.Platform.Files.Rename(path, f.path("moved"), false),
			"renamed to replace": f.Platform.Files.Rename(path, f.path("moved"), true),
			"removed":            f.Platform.Files.Remove(path),
			"opened for writing": written,
		} {
			if !errors.Is(err, fault.ErrInUse) {
				t.Errorf("%s: the error is %v, want %v", what, err, fault.ErrInUse)
			}
		}
		if got := f.read(t, path); got != "text" {
			t.Errorf("a reader meanwhile: %q", got)
		}
		holders, err := f.Platform.Files.Holders(path)
		if err != nil {
			t.Error(err)
		}
		if f.Has.Holders && (len(holders) != 1 || holders[0].Name == "") {
			t.Errorf("the holders are %+v, want one with a name", holders)
		}
		scanner.cancel()
		scanner.wait(t)
		eventually(t, "the scanner's handle is closed", func() bool { return f.Platform.Files.CheckHeld(path) == nil })
		check(t, f.Platform.Files.Rename(path, f.path("moved"), false))
	})
	t.Run("AReplacedFileIsHeld", func(t *testing.T) {
		f := fixture(t)
		f.write(t, f.path("old"), "old")
		f.write(t, f.path("new"), "new")
		scanner := f.begin(t, "scan", f.path("old"))
		if line := scanner.line(t); line != "scanning" {
			t.Fatalf("the scanner says %q", line)
		}
		err := f.Platform.Files.Rename(f.path("new"), f.path("old"), true)
		if !fault.IsHeld(err) {
			t.Errorf("the error is %v, want %v or %v", err, fault.ErrInUse, fault.ErrPermission)
		}
		scanner.cancel()
		scanner.wait(t)
	})
	t.Run("ClosedIsClosed", func(t *testing.T) {
		f := fixture(t)
		w, err := f.Platform.Files.Create(f.path("file"), platform.CreateNew)
		check(t, err)
		check(t, w.Close())
		if _, err := w.Write([]byte("x")); err == nil {
			t.Error("a closed file was written")
		}
		r, err := f.Platform.Files.Open(f.path("file"))
		check(t, err)
		check(t, r.Close())
		if _, err := r.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("a closed file was read: %v", err)
		}
	})
}
