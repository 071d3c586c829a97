package platformtest

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/format/access"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func testLock(t *testing.T, fixture func(*testing.T) Fixture) {
	t.Run("IsExclusive", func(t *testing.T) {
		f := fixture(t)
		lock, err := f.Platform.Files.Lock(f.path("lock"), []byte("me"))
		check(t, err)
		_, err = f.Platform.Files.Lock(f.path("lock"), []byte("you"))
		var locked *fault.LockedError
		switch {
		case !errors.As(err, &locked):
			t.Fatalf("the error is %v, a %T, want a %T", err, err, locked)
		case string(locked.Holder) != "me":
			t.Fatalf("locked.Holder is %q, want %q", string(locked.Holder), "me")
		case locked.Path != f.path("lock"):
			t.Fatalf("locked.Path is %v, want %v", locked.Path, f.path("lock"))
		}
		if err := f.Platform.Files.Remove(f.path("lock")); err == nil {
			t.Error("the file of a lock that is held was removed: two could hold it")
		}
		check(t, lock.Unlock())
		again, err := f.Platform.Files.Lock(f.path("lock"), []byte("again"))
		check(t, err)
		check(t, again.Unlock())
	})
	t.Run("NeedsItsFolder", func(t *testing.T) {
		f := fixture(t)
		if _, err := f.Platform.Files.Lock(f.path("no", "lock"), nil); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("the error is %v, want %v", err, fault.ErrNotExist)
		}
	})
	t.Run("HoldsAcrossProcessesAndEndsWithThem", func(t *testing.T) {
		f := fixture(t)
		other := f.begin(t, "lock", f.path("lock"), "the other")
		if line := other.line(t); line != "locked" {
			t.Fatalf("the other process says %q", line)
		}
		_, err := f.Platform.Files.Lock(f.path("lock"), []byte("me"))
		var locked *fault.LockedError
		switch {
		case !errors.As(err, &locked):
			t.Fatalf("the error is %v, a %T, want a %T", err, err, locked)
		case string(locked.Holder) != "the other":
			t.Fatalf("locked.Holder is %q, want %q", string(locked.Holder), "the other")
		}
		holders, err := f.Platform.Files.Holders(f.path("lock"))
		check(t, err)
		if f.Has.Holders && len(holders) != 1 {
			t.Errorf("the holders are %+v, want the other process", holders)
		}
		other.cancel() // kills the process before it can unlock
		other.wait(t)
		var lock platform.Unlocker
		eventually(t, "the lock ends with its process", func() bool {
			lock, err = f.Platform.Files.Lock(f.path("lock"), []byte("me"))
			return err == nil
		})
		check(t, lock.Unlock())
	})
}

func testACL(t *testing.T, fixture func(*testing.T) Fixture) {
	const sddl = "O:BAD:P(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)"
	t.Run("RoundTrip", func(t *testing.T) {
		f := fixture(t)
		need(t, f.Has.ACL, "access lists")
		check(t, f.Platform.Files.MakeFolder(f.path("safe")))
		check(t, f.Platform.Files.SetACL(f.path("safe"), sddl))
		got, err := f.Platform.Files.ACL(f.path("safe"))
		check(t, err)
		for _, part := range []string{"O:BA", "D:P", "(A;OICI;FA;;;BA)", "(A;OICI;FA;;;SY)"} {
			if !strings.Contains(got, part) {
				t.Errorf("%s lacks %s", got, part)
			}
		}
		if n := strings.Count(got, "("); n != 2 {
			t.Errorf("%s has %d entries", got, n)
		}
		check(t, f.Platform.Files.SetACL(f.path("safe"), got))
		if again, err := f.Platform.Files.ACL(f.path("safe")); again != got || err != nil {
			t.Errorf("set to what it was, it changed from %s to %s, %v", got, again, err)
		}
	})
	t.Run("OnlyWhatIsNamed", func(t *testing.T) {
		f := fixture(t)
		need(t, f.Has.ACL, "access lists")
		f.write(t, f.path("file"), "x")
		check(t, f.Platform.Files.SetACL(f.path("file"), "D:P(A;;FA;;;BA)"))
		check(t, f.Platform.Files.SetACL(f.path("file"), "O:BA"))
		switch got, err := f.Platform.Files.ACL(f.path("file")); {
		case err != nil:
			t.Error(err)
		case !strings.Contains(got, "(A;;FA;;;BA)"):
			t.Errorf("got lacks %q:\n%s", "(A;;FA;;;BA)", got)
		case !strings.Contains(got, "O:BA"):
			t.Errorf("got lacks %q:\n%s", "O:BA", got)
		}
	})
	t.Run("IsInherited", func(t *testing.T) {
		f := fixture(t)
		need(t, f.Has.Inheritance, "inherited access lists")
		check(t, f.Platform.Files.MakeFolder(f.path("safe")))
		check(t, f.Platform.Files.SetACL(f.path("safe"), sddl))
		check(t, f.Platform.Files.MakeFolder(f.path("safe", "below")))
		f.write(t, f.path("safe", "below", "file"), "x")
		got, err := f.Platform.Files.ACL(f.path("safe", "below", "file"))
		check(t, err)
		switch {
		case strings.Contains(got, "D:P"):
			t.Errorf("got contains %q:\n%s", "D:P", got)
		case strings.Count(got, "(A;ID;FA;;;BA)") != 1:
			t.Errorf("%q occurs %d times in got, want %d:\n%s", "(A;ID;FA;;;BA)", strings.Count(got, "(A;ID;FA;;;BA)"),
				1, got)
		case strings.Count(got, "(A;ID;FA;;;SY)") != 1:
			t.Errorf("%q occurs %d times in got, want %d:\n%s", "(A;ID;FA;;;SY)", strings.Count(got, "(A;ID;FA;;;SY)"),
				1, got)
		}
	})
	testCreatedWithAccess(t, fixture)
	t.Run("Nonsense", func(t *testing.T) {
		f := fixture(t)
		need(t, f.Has.ACL, "access lists")
		if err := f.Platform.Files.SetACL(f.Folder, "nonsense"); err == nil {
			t.Error("taken")
		}
		if _, err := f.Platform.Files.ACL(f.path("missing")); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("missing: %v", err)
		}
	})
}

// testCreatedWithAccess checks that a file created with an access list never has a
// different list.
func testCreatedWithAccess(t *testing.T, fixture func(*testing.T) Fixture) {
	t.Run("NewNeverTakesOver", func(t *testing.T) {
		f := fixture(t)
		files := f.Platform.Files
		f.write(t, f.path("file"), "theirs")
		check(t, files.MakeFolder(f.path("folder")))
		for _, name := range []string{"file", "folder"} {
			if err := files.NewFolder(f.path(name), access.SafeFolder); !errors.Is(err, fault.ErrExist) {
				t.Errorf("a new folder over the %s: %v", name, err)
			}
			if _, err := files.NewFile(f.path(name), access.SafeFile); !errors.Is(err, fault.ErrExist) {
				t.Errorf("a new file over the %s: %v", name, err)
			}
		}
		if got := f.read(t, f.path("file")); got != "theirs" {
			t.Errorf("the file: %q", got)
		}
		if err := files.NewFolder(f.path("no", "folder"), ""); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("without its parent: %v", err)
		}
		if _, err := files.NewFile(f.path("no", "file"), ""); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("without its parent: %v", err)
		}
	})
	t.Run("NewFileIsWritten", func(t *testing.T) {
		f := fixture(t)
		w, err := f.Platform.Files.NewFile(f.path("file"), access.SafeFile)
		check(t, err)
		_, err = io.WriteString(w, "text")
		check(t, err)
		check(t, w.Sync())
		check(t, w.Close())
		if got := f.read(t, f.path("file")); got != "text" {
			t.Errorf("read back %q", got)
		}
	})
	t.Run("BornRestricted", func(t *testing.T) {
		f := fixture(t)
		need(t, f.Has.ACL, "access lists")
		files := f.Platform.Files
		check(t, files.NewFolder(f.path("safe"), access.SafeFolder))
		w, err := files.NewFile(f.path("file"), access.SafeFile)
		check(t, err)
		defer w.Close()
		for _, name := range []string{"safe", "file"} {
			sddl, err := files.ACL(f.path(name))
			check(t, err)
			l, err := access.Parse(sddl)
			check(t, err)
			switch {
			case l.Owner != access.System:
				t.Errorf("%s: l.Owner is %v, want %v", name, l.Owner, access.System)
			case !l.Protected:
				t.Errorf("%s: l.Protected is false, want true", name)
			case !l.Exclusive():
				t.Errorf("%s: l.Exclusive() is false, want true", name)
			case len(l.Entries) != 2:
				t.Errorf("%s: l.Entries has %d elements, want 2: %v", name, len(l.Entries), l.Entries)
			}
		}
		if !files.KeepsACL() {
			t.Error("access lists are kept, but KeepsACL returns false")
		}
	})
	t.Run("AnOpenFileKnowsItsOwn", func(t *testing.T) {
		f := fixture(t)
		need(t, f.Has.ACL, "access lists")
		w, err := f.Platform.Files.NewFile(f.path("file"), access.SafeFile)
		check(t, err)
		check(t, w.Close())
		r, err := f.Platform.Files.Open(f.path("file"))
		check(t, err)
		defer r.Close()
		check(t, f.Platform.Files.Rename(f.path("file"), f.path("moved"), false))
		f.write(t, f.path("file"), "another, which inherits")
		sddl, err := platform.ACLOf(r)
		check(t, err)
		switch moved, err := f.Platform.Files.ACL(f.path("moved")); {
		case err != nil:
			t.Error(err)
		case sddl != moved:
			t.Errorf("sddl is %v, want %v", sddl, moved)
		case !strings.Contains(sddl, "O:SY"):
			t.Errorf("sddl lacks %q:\n%s", "O:SY", sddl)
		}
	})
	t.Run("ARenameKeepsIt", func(t *testing.T) {
		f := fixture(t)
		need(t, f.Has.Inheritance, "inherited access lists")
		check(t, f.Platform.Files.NewFolder(f.path("one"), "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FR;;;BU)"))
		check(t, f.Platform.Files.NewFolder(f.path("two"), access.SafeFolder))
		f.write(t, f.path("one", "file"), "x")
		before, err := f.Platform.Files.ACL(f.path("one", "file"))
		check(t, err)
		check(t, f.Platform.Files.Rename(f.path("one", "file"), f.path("two", "file"), false))
		switch after, err := f.Platform.Files.ACL(f.path("two", "file")); {
		case err != nil:
			t.Error(err)
		case after != before:
			t.Errorf("after is %v, want %v", after, before)
		case !strings.Contains(after, "BU"):
			t.Errorf("after lacks %q:\n%s", "BU", after)
		}
	})
}

func testRunningExecutable(t *testing.T, f Fixture) {
	program := f.path("running.exe")
	f.copy(t, f.Program, program)
	command := f.command("folder", "forever")
	command.Path = program
	running := f.start(t, command)
	running.line(t)
	before, err := f.Platform.Files.Stat(program)
	check(t, err)

	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, fault.ErrPermission) && !errors.Is(err, fault.ErrInUse) {
			t.Errorf("%s a running executable: %v", what, err)
		}
	}
	_, err = f.Platform.Files.Create(program, platform.CreateTruncate)
	refused("open for writing", err)
	_, err = f.Platform.Files.Create(program, platform.CreateAppend)
	refused("append to", err)
	refused("remove", f.Platform.Files.Remove(program))
	f.write(t, f.path("new"), "new")
	if f.Has.RunningReplace {
		refused("replace", f.Platform.Files.Rename(f.path("new"), program, true))
	}
	switch info, err := f.Platform.Files.Stat(program); {
	case err != nil:
		t.Fatalf("refused, but changed: %v", err)
	case info.ID != before.ID:
		t.Fatalf("refused, but changed: info.ID is %v, want %v", info.ID, before.ID)
	case info.Size != before.Size:
		t.Fatalf("refused, but changed: info.Size is %v, want %v", info.Size, before.Size)
	}

	moved := f.path("moved.exe")
	check(t, f.Platform.Files.Rename(program, moved, false))
	check(t, f.Platform.Files.Rename(f.path("new"), program, false))
	if got := f.read(t, program); got != "new" {
		t.Errorf("the new file: %q", got)
	}
	if info, err := f.Platform.Files.Stat(moved); err != nil || info.ID != before.ID {
		t.Errorf("the running file: %+v, %v", info, err)
	}
	refused("remove the renamed file of", f.Platform.Files.Remove(moved))

	running.cancel()
	running.wait(t)
	eventually(t, "the executable can be removed once it has ended", func() bool {
		return f.Platform.Files.Remove(moved) == nil
	})
}

// copy copies a file on the machine.
func (f Fixture) copy(t *testing.T, from, to string) {
	t.Helper()
	r, err := f.Platform.Files.Open(from)
	check(t, err)
	defer r.Close()
	w, err := f.Platform.Files.Create(to, platform.CreateNew)
	check(t, err)
	_, err = io.Copy(w, r)
	check(t, err)
	check(t, w.Close())
}
