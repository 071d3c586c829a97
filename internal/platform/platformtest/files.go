package platformtest

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func testFiles(t *testing.T, fixture func(*testing.T) Fixture) {
	t.Run("MissingIsErrNotExist", func(t *testing.T) {
		f := fixture(t)
		files := f.Platform.Files
		missing := f.path("missing", "file")
		_, stat := files.Stat(missing)
		_, list := files.List(missing)
		_, open := files.Open(missing)
		_, create := files.Create(missing, platform.CreateNew)
		for name, err := range map[string]error{
			"stat": stat, "list": list, "open": open, "create": create,
			"remove": files.Remove(missing), "rename": files.Rename(missing, f.path("to"), false),
			"setModified": files.SetModified(missing, time.Now()),
		} {
			if !errors.Is(err, fault.ErrNotExist) {
				t.Errorf("%s: the error is %v, want %v", name, err, fault.ErrNotExist)
			}
		}
	})
	t.Run("RelativePathsAreRefused", func(t *testing.T) {
		f := fixture(t)
		for _, path := range []string{`file`, `.\file`, `C:file`, ``} {
			if _, err := f.Platform.Files.Stat(path); err == nil {
				t.Errorf("%q was accepted", path)
			}
		}
	})
	t.Run("CreateModes", func(t *testing.T) {
		f := fixture(t)
		path := f.path("file")
		put := func(mode platform.CreateMode, text string) error {
			w, err := f.Platform.Files.Create(path, mode)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
			if err := w.Sync(); err != nil {
				return err
			}
			return w.Close()
		}
		check(t, put(platform.CreateNew, "one"))
		if err := put(platform.CreateNew, "x"); !errors.Is(err, fault.ErrExist) {
			t.Errorf("new over old: %v", err)
		}
		check(t, put(platform.CreateAppend, "two"))
		if got := f.read(t, path); got != "onetwo" {
			t.Errorf("appended: %q", got)
		}
		check(t, put(platform.CreateTruncate, "3"))
		if got := f.read(t, path); got != "3" {
			t.Errorf("truncated: %q", got)
		}
		path = f.path("other")
		check(t, put(platform.CreateAppend, "begun"))
		if got := f.read(t, path); got != "begun" {
			t.Errorf("append creates: %q", got)
		}
	})
	t.Run("NamesHaveNoCaseAndEitherSlash", func(t *testing.T) {
		f := fixture(t)
		check(t, f.Platform.Files.MakeFolder(f.path("Folder")))
		f.write(t, f.path("Folder", "File.TXT"), "text")
		if got := f.read(t, f.path("fOLDER")+"/file.txt"); got != "text" {
			t.Errorf("got is %q, want %q", got, "text")
		}
		if got := f.read(t, f.path("folder", "..", ".", "FOLDER", "FILE.txt")); got != "text" {
			t.Errorf("got is %q, want %q", got, "text")
		}
		list, err := f.Platform.Files.List(f.path("FOLDER"))
		check(t, err)
		if len(list) != 1 || base(list[0].Path) != "File.TXT" {
			t.Errorf("the spelling is lost: %+v", list)
		}
	})
	t.Run("Stat", func(t *testing.T) {
		f := fixture(t)
		f.write(t, f.path("file"), "12345")
		info, err := f.Platform.Files.Stat(f.Folder + "/file")
		check(t, err)
		switch {
		case info.Size != 5:
			t.Errorf("file: info.Size is %v, want 5", info.Size)
		case info.Folder:
			t.Error("file: info.Folder is true, want false")
		case info.Link:
			t.Error("file: info.Link is true, want false")
		case info.ReadOnly:
			t.Error("file: info.ReadOnly is true, want false")
		case info.Path != f.path("file"):
			t.Errorf("file: info.Path is %v, want %v", info.Path, f.path("file"))
		}
		if age := time.Since(info.Modified); age > time.Hour || age < -time.Hour {
			t.Errorf("modified %v ago", age)
		}
		info, err = f.Platform.Files.Stat(f.Folder)
		check(t, err)
		if !info.Folder || info.Size != 0 {
			t.Errorf("folder: %+v", info)
		}
	})
	t.Run("SetModified", func(t *testing.T) {
		f := fixture(t)
		f.write(t, f.path("file"), "x")
		want := time.Date(2024, 2, 29, 23, 59, 58, 123_456_700, time.UTC)
		check(t, f.Platform.Files.SetModified(f.path("file"), want))
		info, err := f.Platform.Files.Stat(f.path("file"))
		check(t, err)
		if !info.Modified.Equal(want) {
			t.Error("info.Modified.Equal(want) is false, want true")
		}
	})
	t.Run("SetModifiedOfAnOpenFile", func(t *testing.T) {
		f := fixture(t)
		want := time.Date(2024, 2, 29, 23, 59, 58, 123_456_700, time.UTC)
		file, err := f.Platform.Files.Create(f.path("file"), platform.CreateTruncate)
		check(t, err)
		_, err = file.Write([]byte("x"))
		check(t, err)
		check(t, file.Sync())
		check(t, file.SetModified(want))
		if _, err := f.Platform.Files.Create(f.path("file"), platform.CreateAppend); err == nil {
			t.Error("two can write one file")
		}
		check(t, file.Close())
		info, err := f.Platform.Files.Stat(f.path("file"))
		check(t, err)
		if !info.Modified.Equal(want) {
			t.Error("info.Modified.Equal(want) is false, want true")
		}
	})
	t.Run("ReadWhileItIsWritten", func(t *testing.T) {
		f := fixture(t)
		file, err := f.Platform.Files.Create(f.path("file"), platform.CreateTruncate)
		check(t, err)
		defer file.Close()
		reader, err := f.Platform.Files.Open(f.path("file"))
		check(t, err)
		defer reader.Close()
		for _, text := range []string{"one", "two"} {
			_, err := file.Write([]byte(text))
			check(t, err)
			got := make([]byte, len(text))
			_, err = io.ReadFull(reader, got)
			check(t, err)
			if string(got) != text {
				t.Errorf("%q was written and %q read", text, got)
			}
		}
	})
	t.Run("ListIsSorted", func(t *testing.T) {
		f := fixture(t)
		for _, name := range []string{"b", "c", "a"} {
			f.write(t, f.path(name), name)
		}
		check(t, f.Platform.Files.MakeFolder(f.path("d")))
		list, err := f.Platform.Files.List(f.Folder)
		check(t, err)
		var names string
		for _, info := range list {
			names += base(info.Path)
		}
		switch {
		case names != "abcd":
			t.Errorf("names is %q, want %q", names, "abcd")
		case !list[3].Folder:
			t.Error("list[3].Folder is false, want true")
		case list[0].Size != 1:
			t.Errorf("list[0].Size is %v, want 1", list[0].Size)
		}
		if list, err := f.Platform.Files.List(f.path("d")); err != nil || len(list) != 0 {
			t.Errorf("empty folder: %v, %v", list, err)
		}
		if _, err := f.Platform.Files.List(f.path("a")); err == nil {
			t.Error("a file was listed")
		}
	})
	t.Run("MakeFolder", func(t *testing.T) {
		f := fixture(t)
		deep := f.path("a", "b", "c")
		check(t, f.Platform.Files.MakeFolder(deep))
		check(t, f.Platform.Files.MakeFolder(deep))
		f.write(t, f.path("file"), "x")
		for _, path := range []string{f.path("file"), f.path("file", "below")} {
			if err := f.Platform.Files.MakeFolder(path); err == nil {
				t.Errorf("a file became a folder: %s", path)
			}
		}
	})
	t.Run("FoldersAreNoFiles", func(t *testing.T) {
		f := fixture(t)
		if _, err := f.Platform.Files.Open(f.Folder); !errors.Is(err, fault.ErrIsDirectory) {
			t.Errorf("open: %v", err)
		}
		if _, err := f.Platform.Files.Create(f.Folder, platform.CreateTruncate); !errors.Is(err, fault.ErrIsDirectory) {
			t.Errorf("create: %v", err)
		}
	})
	t.Run("Remove", func(t *testing.T) {
		f := fixture(t)
		check(t, f.Platform.Files.MakeFolder(f.path("full")))
		f.write(t, f.path("full", "file"), "x")
		if err := f.Platform.Files.Remove(f.path("full")); err == nil {
			t.Error("a folder with content was removed")
		}
		check(t, f.Platform.Files.Remove(f.path("full", "file")))
		check(t, f.Platform.Files.Remove(f.path("full")))
		if _, err := f.Platform.Files.Stat(f.path("full")); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("still there: %v", err)
		}
	})
	t.Run("Seek", func(t *testing.T) {
		f := fixture(t)
		f.write(t, f.path("file"), "0123456789")
		r, err := f.Platform.Files.Open(f.path("file"))
		check(t, err)
		defer r.Close()
		switch at, err := r.Seek(-3, io.SeekEnd); {
		case at != 7:
			t.Fatalf("at is %v, want 7", at)
		case err != nil:
			t.Fatal(err)
		}
		rest, err := io.ReadAll(r)
		switch {
		case string(rest) != "789":
			t.Errorf("rest is %q, want %q", string(rest), "789")
		case err != nil:
			t.Error(err)
		}
		if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("at the end: %d, %v", n, err)
		}
	})
	t.Run("FreeBytes", func(t *testing.T) {
		f := fixture(t)
		for _, path := range []string{f.Folder, f.path("not", "there", "yet")} {
			switch free, err := f.Platform.Files.FreeBytes(path); {
			case free <= 0:
				t.Errorf("%s: free is %v, want more than 0", path, free)
			case err != nil:
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}

func testRename(t *testing.T, fixture func(*testing.T) Fixture) {
	t.Run("KeepsTheFile", func(t *testing.T) {
		f := fixture(t)
		f.write(t, f.path("from"), "text")
		before, err := f.Platform.Files.Stat(f.path("from"))
		check(t, err)
		check(t, f.Platform.Files.Rename(f.path("from"), f.path("to"), false))
		after, err := f.Platform.Files.Stat(f.path("to"))
		check(t, err)
		switch {
		case before.ID != after.ID:
			t.Errorf("before.ID is %v, want %v", before.ID, after.ID)
		case !before.Modified.Equal(after.Modified):
			t.Errorf("before.Modified is %v, want %v", before.Modified, after.Modified)
		case before.Size != after.Size:
			t.Errorf("before.Size is %v, want %v", before.Size, after.Size)
		}
		if _, err := f.Platform.Files.Stat(f.path("from")); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("the old name: %v", err)
		}
		switch age := time.Since(after.Created); {
		case !after.Created.Equal(before.Created):
			t.Errorf("after.Created is %v, want %v", after.Created, before.Created)
		case age > time.Hour:
			t.Errorf("age is %v, want at most %v", age, time.Hour)
		case age < -time.Hour:
			t.Errorf("age is %v, want at least %v", age, -time.Hour)
		}
		f.write(t, f.path("from"), "other")
		other, err := f.Platform.Files.Stat(f.path("from"))
		check(t, err)
		if other.ID == after.ID {
			t.Error("two files have one id")
		}
	})
	t.Run("ReplacesOnlyIfToldTo", func(t *testing.T) {
		f := fixture(t)
		f.write(t, f.path("from"), "new")
		f.write(t, f.path("to"), "old")
		if err := f.Platform.Files.Rename(f.path("from"), f.path("to"), false); !errors.Is(err, fault.ErrExist) {
			t.Errorf("the error is %v, want %v", err, fault.ErrExist)
		}
		if f.read(t, f.path("to")) != "old" || f.read(t, f.path("from")) != "new" {
			t.Error("a refused rename has changed something")
		}
		check(t, f.Platform.Files.Rename(f.path("from"), f.path("to"), true))
		if got := f.read(t, f.path("to")); got != "new" {
			t.Errorf("got is %q, want %q", got, "new")
		}
		if _, err := f.Platform.Files.Stat(f.path("from")); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("the old name: %v", err)
		}
	})
	t.Run("OntoItself", func(t *testing.T) {
		f := fixture(t)
		f.write(t, f.path("file"), "text")
		for _, replace := range []bool{true, false} {
			check(t, f.Platform.Files.Rename(f.path("file"), f.path("file"), replace))
			if got := f.read(t, f.path("file")); got != "text" {
				t.Fatalf("got is %q, want %q", got, "text")
			}
		}
		if !f.Has.Respelling {
			return
		}
		check(t, f.Platform.Files.Rename(f.path("file"), f.path("FILE"), false))
		switch list, err := f.Platform.Files.List(f.Folder); {
		case err != nil:
			t.Errorf("new spelling: %v", err)
		case len(list) != 1:
			t.Errorf("new spelling: list has %d elements, want 1: %v", len(list), list)
		case base(list[0].Path) != "FILE":
			t.Errorf("new spelling: base(list[0].Path) is %q, want %q", base(list[0].Path), "FILE")
		}
	})
	t.Run("NeverReplacesAFolder", func(t *testing.T) {
		f := fixture(t)
		f.write(t, f.path("from"), "text")
		check(t, f.Platform.Files.MakeFolder(f.path("to")))
		for _, replace := range []bool{true, false} {
			if err := f.Platform.Files.Rename(f.path("from"), f.path("to"), replace); err == nil {
				t.Error("no error")
			}
		}
		if info, err := f.Platform.Files.Stat(f.path("to")); err != nil || !info.Folder {
			t.Errorf("the folder: %+v, %v", info, err)
		}
		if got := f.read(t, f.path("from")); got != "text" {
			t.Errorf("the file: %q", got)
		}
	})
	t.Run("NeedsTheTargetsFolder", func(t *testing.T) {
		f := fixture(t)
		f.write(t, f.path("from"), "text")
		if err := f.Platform.Files.Rename(f.path("from"), f.path("no", "to"), true); !errors.Is(err,
			fault.ErrNotExist) {
			t.Errorf("the error is %v, want %v", err, fault.ErrNotExist)
		}
	})
	t.Run("MovesFolders", func(t *testing.T) {
		f := fixture(t)
		check(t, f.Platform.Files.MakeFolder(f.path("from", "below")))
		f.write(t, f.path("from", "below", "file"), "text")
		check(t, f.Platform.Files.MakeFolder(f.path("into")))
		check(t, f.Platform.Files.Rename(f.path("from"), f.path("into", "to"), false))
		if got := f.read(t, f.path("into", "to", "below", "file")); got != "text" {
			t.Errorf("got is %q, want %q", got, "text")
		}
	})
}
